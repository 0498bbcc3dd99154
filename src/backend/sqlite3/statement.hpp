#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "backend/query.hpp"
#include "backend/sqlite3/native.hpp"
#include "base/private_api.hpp"

namespace txinbox {
TXINBOX_PRIVATE_API_BEGIN
namespace backend {

/// Throws SQLite's last error on this connection as a `DatabaseError`.
[[noreturn]] void throw_sqlite3_error(::sqlite3* connection, int result, const std::string& what);

/// Runs one or more statements that return no rows. Returns whether they succeeded.
inline bool try_sqlite3_exec(::sqlite3* connection, const std::string& sql) noexcept {
  return sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
}

/// A pool prepares this statement when it configures a connection, see `Sqlite3Session::intact`.
inline constexpr auto sqlite3_begin = "BEGIN IMMEDIATE";

/// A prepared statement. It is reset after each run, because a statement with unread rows holds locks.
class Sqlite3Statement {
 public:
  Sqlite3Statement() = default;
  Sqlite3Statement(::sqlite3* connection, const std::string& sql);
  ~Sqlite3Statement() { finalize(); }
  Sqlite3Statement(const Sqlite3Statement&) = delete;
  Sqlite3Statement& operator=(const Sqlite3Statement&) = delete;

  bool prepared() const noexcept { return statement_ != nullptr; }
  void prepare(::sqlite3* connection, const std::string& sql);
  void finalize() noexcept;

  /// Binds a parameter. Parameters count from 1. The bytes must stay valid until the run has ended. An empty text may
  /// be bound as NULL.
  void bind_text(int position, std::string_view text);
  void bind_text_or_null(int position, std::string_view text);
  void bind_blob(int position, std::string_view bytes);
  void bind_null(int position);
  void bind_integer(int position, long long value);
  void bind_real(int position, double value);
  void bind_blob_or_null(int position, std::string_view bytes);

  /// Runs the statement to its end and resets it. It ignores rows.
  void run();
  int try_run() noexcept;

  /// Fetches one row if there is one. The columns are valid until `reset`.
  bool fetch();
  std::string text(int column) const;
  bool is_null(int column) const noexcept { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  long long integer(int column) const noexcept { return sqlite3_column_int64(statement_, column); }

  /// Ends the run. It also forgets the values, because their memory ends, and others can look at the statement.
  void reset() noexcept {
    sqlite3_reset(statement_);
    if (sqlite3_bind_parameter_count(statement_) > 0) sqlite3_clear_bindings(statement_);
  }

  /// Fetches all rows as text: a statement that is not at its end keeps the read transaction open.
  std::vector<Row> fetch_all(std::size_t columns);

 private:
  void check_bound(int result) const;

  ::sqlite3_stmt* statement_ = nullptr;
};

/// Resets a statement at the end of a scope.
class Sqlite3Reset {
 public:
  explicit Sqlite3Reset(Sqlite3Statement& statement) noexcept : statement_(statement) {}
  ~Sqlite3Reset() { statement_.reset(); }
  Sqlite3Reset(const Sqlite3Reset&) = delete;
  Sqlite3Reset& operator=(const Sqlite3Reset&) = delete;

 private:
  Sqlite3Statement& statement_;
};

}  // namespace backend
TXINBOX_PRIVATE_API_END
}  // namespace txinbox
