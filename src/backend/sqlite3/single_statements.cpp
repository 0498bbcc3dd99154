// Single statements on SQLite: in the open transaction, or each in a transaction of its own.

#include "backend/sqlite3/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

std::size_t Sqlite3Session::execute(const std::string& sql) {
  ::sqlite3* db = connection();
  const OwnSql own(is_own_sql_);
  Sqlite3Statement(db, sql).run();
  return static_cast<std::size_t>(sqlite3_changes(db));
}

/// Runs a statement as a transaction of its own.
template <class Run>
auto Sqlite3Session::in_turn(const std::string& sql, const Run& run) {
  ::sqlite3* db = connection();
  Sqlite3OpenFile::refuse_moved(db);
  enter_queue(db, busy_timeout(db));
  try {
    // Without this check, SQLite would read a literal beyond its limit as NULL.
    if (sql.size() > static_cast<std::size_t>(sqlite3_limit(db, SQLITE_LIMIT_LENGTH, -1))) {
      throw_sqlite3_error(db, SQLITE_TOOBIG, "a statement is longer than the session's limit for a value");
    }
    const auto changed = run();
    turn_->end();
    return changed;
  } catch (...) {
    turn_->end();
    throw;
  }
}

std::size_t Sqlite3Session::change(const std::string& sql) {
  return in_turn(sql, [&] { return execute(sql); });
}

std::optional<std::int64_t> Sqlite3Session::change_returning(const std::string& sql) {
  return in_turn(sql, [&]() -> std::optional<std::int64_t> {
    Sqlite3Statement statement(connection(), sql);
    std::optional<std::int64_t> number;
    while (statement.fetch()) {  // to the end of the statement, because it commits there
      if (!statement.is_null(0)) number = statement.integer(0);
    }
    return number;
  });
}

std::vector<Row> Sqlite3Session::read(const std::string& sql, std::size_t columns) {
  Sqlite3OpenFile::refuse_moved(connection());
  return Sqlite3Statement(connection(), sql).fetch_all(columns);
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
