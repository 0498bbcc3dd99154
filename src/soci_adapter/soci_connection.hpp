#pragma once

#include <optional>
#include <string_view>

#include "backend/database.hpp"
#include "backend/soci_database.hpp"
#include "base/private_api.hpp"

namespace txinbox {
TXINBOX_PRIVATE_API_BEGIN
namespace backend {

/// The database of a SOCI session.
///
/// Errors: `Error` unsupported_database if the session is not connected, or if its database is not linked.
const Database& database_of(soci::session&);

/// The connection of a SOCI session, which must outlive it.
///
/// Errors: as `database_of`.
ConnectionPtr connection_of(soci::session&);

/// Errors: `Error` unsupported_database.
const SociDatabase& soci_database_named(std::string_view name);

}  // namespace backend
TXINBOX_PRIVATE_API_END
}  // namespace txinbox
