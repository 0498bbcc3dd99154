#include "console/open_database.hpp"

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <txinbox/error.hpp>

#include "backend/database.hpp"
#include "base/url.hpp"
#include "soci_adapter/soci_connection.hpp"

namespace txinbox::cli {

namespace {

/// The file that the URL names. Empty for a server, and for `soci:`, because its connection string is not parsed here.
std::string file_of(const DatabaseOption& option) {
  const std::string url = option.url();
  const auto& database = option.database();
  return database.file_of(detail::parse_url(url, database.url_kind()));
}

}  // namespace

Pool create_database(const DatabaseOption& database) {
  // The longest time that a pool takes. A migration can copy a table, and the client waits for the reply.
  return open_pool(database.url(), {.connections = 1, .statement_timeout = std::chrono::days(24)});
}

namespace {

void hide_notices(soci::session& session) {
  const backend::ConnectionPtr connection = backend::connection_of(session);
  connection->database().hide_notices(*connection);
}

Pool open_existing(const DatabaseOption& database, PoolOptions options) {
  const std::string file = file_of(database);
  std::error_code unknown;  // if the folder cannot be read, SQLite says so
  if (!file.empty() && !std::filesystem::exists(file, unknown) && !unknown) {
    throw Error(ErrorCode::schema_missing, fmt::format("{}: there is no such file; txinbox migrate makes it", file));
  }
  return open_pool(database.url(), std::move(options));
}

}  // namespace

Pool open_database(const DatabaseOption& database, bool notices, std::size_t connections) {
  PoolOptions options{.connections = connections};
  if (!notices) options.on_connect = hide_notices;
  return open_existing(database, std::move(options));
}

Pool open_for_reading(const DatabaseOption& database, std::size_t connections) {
  return open_existing(database, {.connections = connections,
                                  .statement_timeout = std::chrono::minutes(10),
                                  .on_connect = [](soci::session& session) {
                                    hide_notices(session);
                                    const backend::ConnectionPtr connection = backend::connection_of(session);
                                    connection->database().do_not_compile(*connection);
                                  }});
}

}  // namespace txinbox::cli
