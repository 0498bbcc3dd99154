#include <sqlite3.h>

#include <array>
#include <utility>

#include <fmt/format.h>

#include "backend/database.hpp"
#include "backend/sqlite3/file.hpp"
#include "backend/sqlite3/parts.hpp"
#include "backend/sqlite3/session.hpp"
#include "backend/sqlite3/statement.hpp"
#include "base/url.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

using enum ErrorClass;

constexpr auto meanings = std::to_array<ErrorCodeMeaning<int>>({
    {SQLITE_CONSTRAINT_PRIMARYKEY, {duplicate_key, "duplicate primary key"}},
    {SQLITE_CONSTRAINT_UNIQUE, {duplicate_key, "duplicate key"}},
    {SQLITE_CONSTRAINT_NOTNULL, {other, "NULL in a NOT NULL column"}},
    {SQLITE_CONSTRAINT_CHECK, {other, "a CHECK constraint"}},
    {SQLITE_CONSTRAINT_FOREIGNKEY, {other, "a foreign key"}},
    {SQLITE_ERROR, {other, "wrong SQL, or a table or column that is not there"}},
    {SQLITE_ABORT, {other, "aborted"}},
    {SQLITE_BUSY, {lock_timeout, "the database is locked"}},
    {SQLITE_LOCKED, {lock_timeout, "a table is locked"}},
    {SQLITE_NOMEM, {environment, "no memory"}},
    {SQLITE_READONLY, {other, "read-only"}},
    {SQLITE_READONLY_DBMOVED, {environment, "the file was moved or replaced"}},
    {SQLITE_INTERRUPT, {statement_timeout}},
    {SQLITE_IOERR, {environment, "disk I/O"}},
    {SQLITE_CORRUPT, {environment, "the file is corrupt"}},
    {SQLITE_FULL, {environment, "the disk is full"}},
    {SQLITE_CANTOPEN, {connection_lost, "the file cannot be opened"}},
    {SQLITE_PROTOCOL, {lock_timeout}},
    {SQLITE_TOOBIG, {other, "too big"}},
    {SQLITE_CONSTRAINT, {other, "a constraint"}},
    {SQLITE_MISMATCH, {other, "a value of the wrong type"}},
    {SQLITE_NOTADB, {environment, "not a database file"}},
});

const ErrorMeaning* meaning_of(int code) {
  return find_meaning(meanings, [code](int each) { return each == code; });
}

/// Returns the meaning of a code. A code that is not listed is `ErrorClass::other`, without a text.
ErrorMeaning sqlite3_meaning(int code) {
  const ErrorMeaning* found = meaning_of(code);
  if (found == nullptr) found = meaning_of(code & 0xFF);  // the primary code of an extended code
  return found == nullptr ? ErrorMeaning() : *found;
}

int number_of(const std::string& code) noexcept { return static_cast<int>(number_in(code)); }

::sqlite3* opened(const NativeConnection& connection) {
  ::sqlite3* const db = sqlite3_native(connection);
  if (db == nullptr) throw Error(ErrorCode::unsupported_database, "the session is not connected");
  return db;
}

class Sqlite3Database final : public Database {
 public:
  std::string_view name() const noexcept override { return sqlite3_name; }

  detail::UrlKind url_kind() const noexcept override { return detail::UrlKind::file; }

  std::string file_of(const detail::Url& url) const override {
    if (url.scheme == "soci" || !url.parameters.empty() || is_sqlite3_in_memory(url.path)) return {};
    return sqlite3_file(url);
  }

  ErrorMeaning meaning_of(const std::string& code) const noexcept override { return sqlite3_meaning(number_of(code)); }

  ErrorDescription describe(const std::string& code_text) const override {
    const int code = number_of(code_text);
    const std::string_view meaning = sqlite3_meaning(code).text;
    // For wrong SQL, a constraint and a mismatch, SQLite's own text contains the names.
    const int primary = code & 0xFF;
    const bool has_names = primary == SQLITE_ERROR || primary == SQLITE_CONSTRAINT || primary == SQLITE_MISMATCH;
    return {
        .what = "SQLite error", .code = code_text, .meaning = meaning, .is_complete = !meaning.empty() && !has_names};
  }

  std::unique_ptr<Session> attach(ConnectionPtr connection, Ownership ownership) const override {
    return std::make_unique<Sqlite3Session>(std::move(connection), ownership);
  }

  std::unique_ptr<Catalog> catalog(ConnectionPtr connection) const override {
    return make_sqlite3_catalog(std::move(connection));
  }

  void refuse_unopened(void* handle) const override {
    if (sqlite3_libversion_number() < SQLITE_VERSION_NUMBER) {
      throw Error(
          ErrorCode::unsupported_database,
          fmt::format("the program runs with SQLite {}, and txinbox was built with {}; run it with this version "
                      "or a later one",
                      sqlite3_libversion(), SQLITE_VERSION));
    }
    auto* const db = static_cast<::sqlite3*>(handle);
    if (sqlite3_exec(db, "SELECT 1", nullptr, nullptr, nullptr) == SQLITE_MISUSE) {
      throw Error(ErrorCode::invalid_argument, "the connection to SQLite is not open; sqlite3_open has failed");
    }
  }

  std::vector<Row> query(const NativeConnection& connection, const std::string& sql,
                         std::size_t columns) const override {
    return Sqlite3Statement(opened(connection), sql).fetch_all(columns);
  }

  std::size_t run(const NativeConnection& connection, const std::string& sql) const override {
    ::sqlite3* db = opened(connection);
    Sqlite3Statement(db, sql).run();
    return static_cast<std::size_t>(sqlite3_changes(db));
  }

  std::unique_ptr<Dialect> dialect(const std::string& /*always main*/) const override { return make_sqlite3_dialect(); }
};

}  // namespace

// registry.hpp lists it.
extern "C" const Database* txinbox_sqlite3_database() noexcept {
  static const Sqlite3Database database;
  return &database;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
