#include "backend/sqlite3/statement.hpp"

#include "backend/database_error.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

void throw_sqlite3_error(::sqlite3* connection, int result, const std::string& what) {
  // A session of the caller's returns only primary codes.
  if (const int code = sqlite3_extended_errcode(connection); (code & 0xFF) == result) result = code;
  throw_database_error(sqlite3_name, connection, std::to_string(result),
                       "txinbox: " + what + ": " + sqlite3_errmsg(connection));
}

Sqlite3Statement::Sqlite3Statement(::sqlite3* connection, const std::string& sql) { prepare(connection, sql); }

void Sqlite3Statement::prepare(::sqlite3* connection, const std::string& sql) {
  finalize();
  const int result = sqlite3_prepare_v3(connection, sql.c_str(), static_cast<int>(sql.size()) + 1,
                                        SQLITE_PREPARE_PERSISTENT, &statement_, nullptr);
  if (result != SQLITE_OK) throw_sqlite3_error(connection, result, "cannot prepare a statement");
}

void Sqlite3Statement::finalize() noexcept {
  sqlite3_finalize(statement_);
  statement_ = nullptr;
}

/// Throws if a value could not be bound. Without this check, the value would be NULL.
void Sqlite3Statement::check_bound(int result) const {
  if (result != SQLITE_OK) throw_sqlite3_error(sqlite3_db_handle(statement_), result, "cannot bind a value");
}

void Sqlite3Statement::bind_text(int position, std::string_view text) {
  check_bound(sqlite3_bind_text(statement_, position, text.data(), static_cast<int>(text.size()), SQLITE_STATIC));
}

void Sqlite3Statement::bind_text_or_null(int position, std::string_view text) {
  if (text.empty()) {
    bind_null(position);
  } else {
    bind_text(position, text);
  }
}

void Sqlite3Statement::bind_null(int position) { check_bound(sqlite3_bind_null(statement_, position)); }

void Sqlite3Statement::bind_integer(int position, long long value) {
  check_bound(sqlite3_bind_int64(statement_, position, value));
}

void Sqlite3Statement::bind_real(int position, double value) {
  check_bound(sqlite3_bind_double(statement_, position, value));
}

void Sqlite3Statement::bind_blob(int position, std::string_view bytes) {
  if (bytes.empty()) {
    check_bound(sqlite3_bind_zeroblob(statement_, position, 0));  // a null pointer would bind NULL
  } else {
    check_bound(sqlite3_bind_blob(statement_, position, bytes.data(), static_cast<int>(bytes.size()), SQLITE_STATIC));
  }
}

void Sqlite3Statement::bind_blob_or_null(int position, std::string_view bytes) {
  if (bytes.empty()) {
    bind_null(position);
  } else {
    bind_blob(position, bytes);
  }
}

int Sqlite3Statement::try_run() noexcept {
  int result = SQLITE_ROW;
  while (result == SQLITE_ROW) result = sqlite3_step(statement_);
  reset();
  return result == SQLITE_DONE ? SQLITE_OK : result;
}

void Sqlite3Statement::run() {
  ::sqlite3* connection = sqlite3_db_handle(statement_);
  if (const int result = try_run(); result != SQLITE_OK) {
    throw_sqlite3_error(connection, result, "a statement failed");
  }
}

bool Sqlite3Statement::fetch() {
  const int result = sqlite3_step(statement_);
  if (result == SQLITE_ROW) return true;
  ::sqlite3* connection = sqlite3_db_handle(statement_);
  reset();
  if (result != SQLITE_DONE) throw_sqlite3_error(connection, result, "a query failed");
  return false;
}

std::vector<Row> Sqlite3Statement::fetch_all(std::size_t columns) {
  std::vector<Row> rows;
  while (fetch()) {
    Row& row = rows.emplace_back(columns);
    for (std::size_t i = 0; i < columns; ++i) {
      if (!is_null(static_cast<int>(i))) row[i] = text(static_cast<int>(i));
    }
  }
  return rows;
}

std::string Sqlite3Statement::text(int column) const {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_, column));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column));
  return data == nullptr ? std::string() : std::string(data, size);
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
