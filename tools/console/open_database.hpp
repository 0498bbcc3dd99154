#pragma once

#include <cstddef>

#include <txinbox/pool.hpp>

#include "console/database_option.hpp"

namespace txinbox::cli {

/// A pool of one connection, which is all that a command needs.
///
/// `notices`: whether a client library may write the server's notices to standard error. They can hold
/// the values of a message.
///
/// Errors: as `DatabaseOption::url` and `open_pool`; and where the URL names a file that is not there,
///         since opening would make it: `Error` schema_missing.
Pool open_database(const DatabaseOption& database, bool notices = false, std::size_t connections = 1);

/// The same for what reads whole tables: a statement may take ten minutes.
Pool open_for_reading(const DatabaseOption& database);

/// The same, and makes a file that is not there.
Pool create_database(const DatabaseOption& database);

}  // namespace txinbox::cli
