#pragma once

#include <string>
#include <vector>

namespace soci {
class session;
}

namespace txinbox::torture {

inline constexpr const char* consumer_name = "txinbox-torture";
inline constexpr const char* account_table = "txinbox_torture_account";
inline constexpr const char* ledger_table = "txinbox_torture_ledger";
inline constexpr const char* resource_table = "txinbox_torture_resource";

/// The tables that a storm writes besides its rows in the inbox: the accounts, the ledger, and the resource that stores
/// fences.
///
/// Errors: all functions throw database errors.

/// Describes which tables and rows of a storm exist. Empty if there are none.
std::vector<std::string> scratch_leftovers(soci::session& sql);

/// Creates the tables and the accounts. If one of the tables exists, it fails, and creates nothing.
void create_scratch_tables(soci::session& sql);

/// Removes the tables that exist, and the consumer's rows in the inbox: its messages, and those that failed. Otherwise
/// a later storm would publish their payloads again. It does not touch other consumers' rows.
void remove_scratch(soci::session& sql);

}  // namespace txinbox::torture
