#pragma once

// The databases that are linked. Each is an archive of its own where the library is static: a program that needs one of
// them needs the client library of that one alone.

#include <string>
#include <string_view>

#include <txinbox/version.hpp>

#include "backend/database.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// Errors: `Error` unsupported_database.
const Database& database_named(std::string_view name);
const Database& database_of(soci::session&);

/// The database that a URL names, by its scheme or behind `soci:`.
///
/// Errors: `Error` invalid_argument for a scheme that is not known; unsupported_database for a database that is not
///         linked.
const Database& database_of_url(std::string_view url);

/// The same by the scheme alone; null if it is not known, or its database is not linked.
const Database* find_by_scheme(std::string_view scheme) noexcept;

/// Whether a database is known by this scheme, linked or not. `soci` counts too.
bool is_url_scheme(std::string_view scheme) noexcept;

/// The first database that knows the error decides. `other` if none does: an error that SOCI itself throws has no code.
/// A connection that cannot be opened is different: `Database::open` throws the database's kind of error.
ErrorClass classify(const soci::soci_error&) noexcept;

/// "database error without a code" for an error that no database knows.
ErrorDescription describe(const soci::soci_error&);

/// "mysql 1146"; "database" for an error without a code.
std::string code_of(const soci::soci_error&);

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
