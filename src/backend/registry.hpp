#pragma once

// The databases that are linked. In a static library, each database is an archive of its own. So a program needs only
// the client libraries of the databases that it uses.

#include <string>
#include <string_view>

#include "backend/database.hpp"
#include "base/private_api.hpp"

// The only list of the databases. An entry has the name and the schemes of the URLs, the preferred scheme first. The
// schemes are here and not in the database's folder, so that a URL of a database that is not linked causes a clear
// error.
#define TXINBOX_FOR_EACH_DATABASE(X) \
  X(sqlite3, "sqlite", "sqlite3")    \
  X(mysql, "mysql", "mariadb")       \
  X(postgresql, "postgresql", "postgres")

namespace txinbox {
TXINBOX_PRIVATE_API_BEGIN
namespace backend {

/// Errors: `Error` unsupported_database.
const Database& database_named(std::string_view name);

/// Returns null if the database is not linked.
const Database* find_database(std::string_view name) noexcept;

/// Returns the database that a URL names. The name is the scheme of the URL, or it follows `soci:`.
///
/// Errors: `Error` invalid_argument if the scheme is not known. `Error` unsupported_database if the database is not
///         linked.
const Database& database_of_url(std::string_view url);

/// Returns the database of a scheme. Null if the scheme is not known, or if its database is not linked.
const Database* find_by_scheme(std::string_view scheme) noexcept;

/// Whether a database has this scheme. The database need not be linked. `soci` is also a scheme.
bool is_url_scheme(std::string_view scheme) noexcept;

}  // namespace backend
TXINBOX_PRIVATE_API_END
}  // namespace txinbox
