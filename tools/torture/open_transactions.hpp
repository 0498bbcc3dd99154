#pragma once

#include <optional>
#include <string>

namespace soci {
class session;
}

namespace txinbox::torture {

/// What shows that a transaction of the storm is still open, in words; nothing when there is none.
///
/// A server that lists its sessions is asked for those of that name. Any other is asked for a lock on
/// everything that a transaction of the storm locks, without waiting: the accounts and the consumer's
/// rows; or for the lock of its one writer.
///
/// Errors: a database error as it was.
std::optional<std::string> open_transaction(soci::session& sql, const std::string& name);

}  // namespace txinbox::torture
