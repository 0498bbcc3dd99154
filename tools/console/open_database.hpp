#pragma once

#include <cstddef>

#include <txinbox/pool.hpp>

#include "console/database_option.hpp"

namespace txinbox::cli {

/// A pool of one connection, which is enough for a command.
///
/// `notices`: whether a client library may write the server's notices to standard error. They can contain values of a
/// message.
///
/// Errors: as `DatabaseOption::url` and `open_pool`. `Error` schema_missing if the URL names a file that does not
///          exist, because opening would create it.
Pool open_database(const DatabaseOption& database, bool notices = false, std::size_t connections = 1);

/// The same for commands that read whole tables: a statement may take ten minutes.
Pool open_for_reading(const DatabaseOption& database, std::size_t connections = 1);

/// The same for migrations: it creates a file that does not exist, and a statement may take 24 days.
Pool create_database(const DatabaseOption& database);

}  // namespace txinbox::cli
