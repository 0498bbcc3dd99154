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

/// What a storm writes besides rows of its consumer: the accounts, the ledger, and the
/// resource that remembers fences.
///
/// Errors: of all: a database error as it was.

/// What is there of it, in words: tables, and rows of the consumer. Empty when nothing is.
std::vector<std::string> scratch_leftovers(soci::session& sql);

/// Creates the tables, with the accounts. Fails where one is there already, and then leaves none of its
/// own behind.
void create_scratch_tables(soci::session& sql);

/// Removes the tables that are there, and the consumer's rows in the inbox; no other consumer's.
void remove_scratch(soci::session& sql);

}  // namespace txinbox::torture
