#pragma once

#include <optional>
#include <string>

namespace soci {
class session;
}

namespace txinbox::torture {

/// Describes what shows that a transaction of the storm is still open. Nothing if no transaction is open.
///
/// If the server lists its sessions, this looks for those with that name. On other databases, it tries to lock, without
/// waiting, everything that a transaction of the storm locks: the accounts and the consumer's rows, or the only
/// writer's lock.
///
/// Errors: database errors.
std::optional<std::string> open_transaction(soci::session& sql, const std::string& name);

}  // namespace txinbox::torture
