#include "console/open_database.hpp"

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <soci/soci.h>
#include <txinbox/error.hpp>

namespace txinbox::cli {

namespace {

/// The file that a URL of ours names; empty for what SOCI takes apart, or what is not a file.
std::string sqlite_file(const DatabaseOption& database) {
  if (database.database() != Database::sqlite3) return {};
  std::string url = database.url();
  if (url.starts_with("soci:")) return {};
  url.erase(0, url.find(':') + 1);
  if (url.starts_with("///")) url.erase(0, 2);
  return url.find_first_of("%?:") == std::string::npos ? url : std::string();
}

}  // namespace

Pool create_database(const DatabaseOption& database) { return open_pool(database.url(), {.connections = 1}); }

namespace {

Pool open_existing(const DatabaseOption& database, PoolOptions options, bool notices) {
  if (const std::string file = sqlite_file(database); !file.empty() && !std::filesystem::exists(file)) {
    throw Error(ErrorCode::schema_missing, fmt::format("{}: there is no such file; txinbox migrate makes it", file));
  }
  if (!notices) {
    options.on_connect = [](soci::session& session) {
      if (session.get_backend_name() == "postgresql") session << "set client_min_messages to error";
    };
  }
  return open_pool(database.url(), std::move(options));
}

}  // namespace

Pool open_database(const DatabaseOption& database, bool notices) {
  return open_existing(database, {.connections = 1}, notices);
}

Pool open_for_reading(const DatabaseOption& database) {
  return open_existing(database, {.connections = 1, .statement_timeout = std::chrono::minutes(10)}, false);
}

}  // namespace txinbox::cli
