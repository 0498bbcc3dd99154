#pragma once

#include <string_view>

#include <txinbox/version.hpp>

namespace soci {
class session;
}

namespace txinbox::inline TXINBOX_ABI {

/// Removes the row of one key, whatever its state: the next delivery runs the handler again. For the
/// operator who knows that the effect is not there, or must be repeated.
///
/// Transaction: its own; none may be open.
/// Blocking:    waits for a transaction that holds the key.
/// Errors:      `Error` invalid_key, transaction_open, schema_missing; a database error as it was.
/// @return whether there was a row.
bool forget(soci::session& session, std::string_view consumer, std::string_view business_key);

}  // namespace txinbox::inline TXINBOX_ABI
