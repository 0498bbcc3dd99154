#pragma once

// The databases that are linked. Each is an archive of its own where the library is static: a program that needs one of
// them needs the client library of that one alone.

#include <string>
#include <string_view>

#include <txinbox/version.hpp>

#include "backend/database.hpp"

// The one list of the databases: a name, the schemes of the URLs, the preferred one first. The schemes stand here and
// not in the database's folder, so that a URL of a database that is not linked gets a clear error.
#define TXINBOX_FOR_EACH_DATABASE(X) \
  X(sqlite3, "sqlite", "sqlite3")    \
  X(mysql, "mysql", "mariadb")       \
  X(postgresql, "postgresql", "postgres")

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// Errors: `Error` unsupported_database.
const Database& database_named(std::string_view name);

/// Null if it is not linked.
const Database* find_database(std::string_view name) noexcept;

/// The database that a URL names, by its scheme or behind `soci:`.
///
/// Errors: `Error` invalid_argument for a scheme that is not known; unsupported_database for a database that is not
///         linked.
const Database& database_of_url(std::string_view url);

/// The same by the scheme alone; null if it is not known, or its database is not linked.
const Database* find_by_scheme(std::string_view scheme) noexcept;

/// Whether a database is known by this scheme, linked or not. `soci` counts too.
bool is_url_scheme(std::string_view scheme) noexcept;

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
