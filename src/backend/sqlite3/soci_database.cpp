// SOCI's header declares SQLite's interface in a namespace of its own, so this file must not include <sqlite3.h>.
#include <soci/soci.h>
#include <soci/sqlite3/soci-sqlite3.h>
#include <soci/version.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "backend/query.hpp"
#include "backend/soci_database.hpp"
#include "backend/sqlite3/file.hpp"
#include "base/url.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

/// Returns the file name in SOCI's connection string.
std::string_view file_in(std::string_view connection_string) {
  for (const std::string_view key : {"dbname=", "db="}) {
    if (const auto at = connection_string.find(key); at != std::string_view::npos) {
      connection_string.remove_prefix(at + key.size());
      if (connection_string.starts_with('"')) {
        connection_string.remove_prefix(1);
        return connection_string.substr(0, connection_string.find('"'));
      }
      return connection_string.substr(0, connection_string.find(' '));
    }
  }
  return connection_string;
}

/// Whether SQLite finds a statement in `sql`, and not only space and comments. A syntax error counts as one.
bool has_statement(sqlite_api::sqlite3* connection, const char* sql) {
  sqlite_api::sqlite3_stmt* statement = nullptr;
  while (*sql != '\0') {
    const bool prepared = sqlite_api::sqlite3_prepare_v2(connection, sql, -1, &statement, &sql) == SQLITE_OK;
    if (!prepared || statement != nullptr) {
      sqlite_api::sqlite3_finalize(statement);
      return true;
    }
  }
  return false;
}

class Sqlite3SociDatabase final : public SociDatabase {
 public:
  std::string connection_string(const detail::Url& url, const PoolOptions& options) const override {
    const auto refuse = [](const std::string& why) {
      throw Error(ErrorCode::invalid_argument, "the SQLite URL " + why + "; write it as sqlite:file.db");
    };
    std::string string = url.path;
    if (url.scheme != "soci") {
      if (url.has_authority && !(url.host.empty() && url.user.empty() && url.port.empty())) {
        refuse("names a host (three slashes begin an absolute path: sqlite:///var/lib/orders.db)");
      }
      if (!url.parameters.empty()) refuse("has parameters, of which there are none");
      const std::string file = sqlite3_file(url);
      if (file.empty() || file == "/") refuse("names no file");
      if (file.find('"') != std::string::npos) refuse("has a '\"' in the file's name, which SOCI cannot pass on");
      string = "dbname=\"" + file + "\"";
    }
    if (options.connections > 1 && is_sqlite3_in_memory(file_in(string))) {
      throw Error(ErrorCode::unsafe_connection,
                  "each connection to an in-memory SQLite database would be a database of its own; set "
                  "PoolOptions::connections to 1, or use a file");
    }
    return string;
  }

  const soci::backend_factory& factory() const noexcept override { return soci::sqlite3; }

  /// If a file cannot be opened for a temporary reason, for example because no file descriptor is free, this returns
  /// none.
  std::optional<std::string> refusal(const std::string& code, const std::string& connection_string) const override {
    constexpr int moved = 1032;  // SQLITE_READONLY_DBMOVED: who moved the file must act, see open_file.hpp
    if (number_in(code) == moved) return std::nullopt;
    enum Primary { perm = 3, readonly = 8, cantopen = 14, auth = 23, notadb = 26 };
    const std::filesystem::path file(file_in(connection_string));
    const auto say = [&](std::string_view why) {
      return fmt::format("the SQLite file '{}' {} (sqlite3 {}); check the URL, and who runs this", file.string(), why,
                         code);
    };
    std::error_code unknown;
    const auto folder = file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
    switch (number_in(code) & 0xFF) {
      case notadb:
        return say("is not a SQLite database");
      case perm:
      case auth:
      case readonly:
        return say("may not be written");
      case cantopen:
        if (!std::filesystem::is_directory(folder, unknown)) return say("is in a folder that does not exist");
        if (std::filesystem::is_directory(file, unknown)) return say("is a folder");
        if (::access(folder.c_str(), W_OK | X_OK) != 0) return say("is in a folder that may not be written");
        return std::nullopt;
      default:
        return std::nullopt;
    }
  }

  void* handle_of(soci::session& sql) const noexcept override {
    auto* backend = static_cast<soci::sqlite3_session_backend*>(sql.get_backend());
    return backend == nullptr ? nullptr : backend->conn_;
  }

  std::optional<std::string> code_of(const soci::soci_error& error) const override {
    const auto* e = dynamic_cast<const soci::sqlite3_soci_error*>(&error);
    if (e == nullptr) return std::nullopt;
    return std::to_string(e->result());
  }

  /// SQLite prepares the first statement of a text, and ignores the rest. A placeholder without a value is NULL.
  void check_prepared(soci::session& sql, soci::details::statement_backend& backend, const std::string& text,
                      std::size_t parameters) const override {
    auto* statement = static_cast<soci::sqlite3_statement_backend&>(backend).stmt_;
    if (statement == nullptr) return;  // the text is empty
    void* const connection = handle_of(sql);
    const auto refuse = [&](int code, const std::string& why) {
      constexpr std::size_t most = 60;
      const auto without_values = std::min({text.find('\''), text.size(), most});
      raise(connection, std::to_string(code),
            fmt::format("the statement \"{}{}\" {}", text.substr(0, without_values),
                        without_values == text.size() ? "" : "...", why));
    };
    if (has_statement(static_cast<sqlite_api::sqlite3*>(connection),
                      text.c_str() + std::strlen(sqlite_api::sqlite3_sql(statement)))) {
      refuse(SQLITE_ERROR, "has another statement behind it, which SQLite would not run; call execute for each");
    }
    const auto placeholders = static_cast<std::size_t>(sqlite_api::sqlite3_bind_parameter_count(statement));
    if (placeholders != parameters) {
      refuse(SQLITE_RANGE,
             fmt::format("has another number of placeholders ({}) than execute has parameters ({}); pass one for each",
                         placeholders, parameters));
    }
  }

#if SOCI_VERSION >= 400100
  void raise(void* handle, const std::string& code, const std::string& text) const override {
    throw SociDatabaseError<soci::sqlite3_soci_error>(database_name, code, static_cast<sqlite_api::sqlite3*>(handle),
                                                      "", text.c_str());
  }
#else
  void raise(void* /*handle*/, const std::string& code, const std::string& text) const override {
    throw SociDatabaseError<soci::sqlite3_soci_error>(database_name, code, text, static_cast<int>(number_in(code)));
  }
#endif

 private:
  static constexpr std::string_view database_name = "sqlite3";
};

}  // namespace

// The adapter to SOCI refers to this function.
extern "C" const SociDatabase* txinbox_sqlite3_soci() noexcept {
  static const Sqlite3SociDatabase database;
  return &database;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
