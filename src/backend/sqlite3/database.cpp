#include <soci/soci.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "backend/database.hpp"
#include "backend/sqlite3/catalog.hpp"
#include "backend/sqlite3/dialect.hpp"
#include "backend/sqlite3/error_meaning.hpp"
#include "backend/sqlite3/session.hpp"
#include "backend/sqlite3/user_sql.hpp"
#include "base/url.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

bool is_in_memory(std::string_view file) {
  return file.empty() || file.find(":memory:") != std::string_view::npos ||
         file.find("mode=memory") != std::string_view::npos;
}

/// The name of the file in SOCI's connection string.
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

std::string path_of(const detail::Url& url) { return url.has_authority ? "/" + url.path : url.path; }

class Sqlite3Database final : public Database {
 public:
  std::string_view name() const noexcept override { return "sqlite3"; }

  detail::UrlKind url_kind() const noexcept override { return detail::UrlKind::file; }

  std::string file_of(const detail::Url& url) const override {
    if (url.scheme == "soci" || !url.parameters.empty() || is_in_memory(url.path)) return {};
    return path_of(url);
  }

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
      const std::string file = path_of(url);
      if (file.empty() || file == "/") refuse("names no file");
      if (file.find('"') != std::string::npos) refuse("has a '\"' in the file's name, which SOCI cannot pass on");
      string = "dbname=\"" + file + "\"";
    }
    if (options.connections > 1 && is_in_memory(file_in(string))) {
      throw Error(ErrorCode::unsafe_connection,
                  "each connection to an in-memory SQLite database would be a database of its own; set "
                  "PoolOptions::connections to 1, or use a file");
    }
    return string;
  }

  const soci::backend_factory& factory() const noexcept override { return soci::sqlite3; }

  /// If a file cannot be opened because, for example, no file descriptor is left, this returns none.
  std::optional<std::string> refusal(const soci::soci_error& error,
                                     const std::string& connection_string) const override {
    const auto* e = dynamic_cast<const soci::sqlite3_soci_error*>(&error);
    if (e == nullptr) return std::nullopt;
    const std::filesystem::path file(file_in(connection_string));
    const auto say = [&](std::string_view why) {
      return fmt::format("the SQLite file '{}' {} (sqlite3 {}); check the URL, and who runs this", file.string(), why,
                         e->result());
    };
    std::error_code unknown;
    const auto folder = file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
    switch (e->result() & 0xFF) {
      case SQLITE_NOTADB:
        return say("is not a SQLite database");
      case SQLITE_PERM:
      case SQLITE_AUTH:
      case SQLITE_READONLY:
        return say("may not be written");
      case SQLITE_CANTOPEN:
        if (!std::filesystem::is_directory(folder, unknown)) return say("is in a folder that does not exist");
        if (std::filesystem::is_directory(file, unknown)) return say("is a folder");
        if (::access(folder.c_str(), W_OK | X_OK) != 0) return say("is in a folder that may not be written");
        return std::nullopt;
      default:
        return std::nullopt;
    }
  }

  std::optional<ErrorClass> classify(const soci::soci_error& error) const noexcept override {
    const auto* e = dynamic_cast<const soci::sqlite3_soci_error*>(&error);
    if (e == nullptr) return std::nullopt;
    return sqlite3_meaning(e->result()).error_class;
  }

  std::string code_of(const soci::soci_error& error) const override {
    return std::to_string(static_cast<const soci::sqlite3_soci_error&>(error).result());
  }

  ErrorDescription describe(const soci::soci_error& error) const override {
    const int code = static_cast<const soci::sqlite3_soci_error&>(error).result();
    const std::string_view meaning = sqlite3_meaning(code).text;
    // Of wrong SQL, a constraint and a mismatch, SQLite's own text has the names.
    const int primary = code & 0xFF;
    const bool has_names = primary == SQLITE_ERROR || primary == SQLITE_CONSTRAINT || primary == SQLITE_MISMATCH;
    return {.what = "SQLite error",
            .code = std::to_string(code),
            .meaning = meaning,
            .is_complete = !meaning.empty() && !has_names};
  }

  using Database::attach;
  std::unique_ptr<Session> attach(std::unique_ptr<NativeConnection> connection, Ownership ownership) const override {
    return std::make_unique<Sqlite3Session>(std::move(connection), ownership);
  }
  std::unique_ptr<NativeConnection> native_connection(soci::session& sql) const override {
    return std::make_unique<SociConnection<sqlite3_native>>(sql);
  }

  std::unique_ptr<Catalog> catalog(soci::session& sql) const override { return make_sqlite3_catalog(sql); }

  std::unique_ptr<Dialect> dialect(const std::string& /*always main*/) const override { return make_sqlite3_dialect(); }

  const UserSql& user_sql() const noexcept override { return sqlite3_user_sql(); }

  ScratchSql scratch_sql() const override { return {.has_one_writer = true}; }
};

}  // namespace

// registry.cpp lists it.
extern "C" const Database* txinbox_sqlite3_database() noexcept {
  static const Sqlite3Database database;
  return &database;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
