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

namespace {

void bind(Sqlite3Statement& statement, std::span<const Parameter> values) {
  int position = 0;
  for (const Parameter& each : values) {
    ++position;
    if (each.value.data() == nullptr) {
      statement.bind_null(position);
    } else if (each.type == ParameterType::bytes || each.type == ParameterType::token) {
      statement.bind_blob(position, each.value);
    } else {
      statement.bind_text(position, each.value);
    }
  }
}

}  // namespace

/// Calls `run` with the statement, which has its values. A pool keeps the statement prepared.
template <class Run>
auto Sqlite3Session::with_kept(const KeptStatement& statement, std::span<const Parameter> values, const Run& run) {
  const OwnSql own(is_own_sql_);
  Sqlite3Statement unkept;
  Sqlite3Statement& prepared = pooled_ && intact() ? kept_[&statement] : unkept;
  if (!prepared.prepared()) prepared.prepare(connection(), statement.sql(dialect()));
  const Sqlite3Reset reset_at_end(prepared);
  bind(prepared, values);
  return run(prepared);
}

bool Sqlite3Session::try_run_kept(const KeptStatement& statement, std::span<const Parameter> values) {
  if (!pooled_ || !intact()) return false;
  with_kept(statement, values, [](Sqlite3Statement& prepared) { prepared.run(); });
  return true;
}

/// Runs statements as a transaction of their own.
template <class Run>
auto Sqlite3Session::in_turn(const Run& run) {
  ::sqlite3* db = connection();
  Sqlite3OpenFile::refuse_moved(db);
  enter_queue(db, busy_timeout(db));
  const EndTurn end_turn{turn_};
  return run(db);
}

std::size_t Sqlite3Session::change(const std::string& sql) {
  return in_turn([&](::sqlite3* db) {
    // Without this check, SQLite would read a literal beyond its limit as NULL.
    if (sql.size() > static_cast<std::size_t>(sqlite3_limit(db, SQLITE_LIMIT_LENGTH, -1))) {
      throw_sqlite3_error(db, SQLITE_TOOBIG, "a statement is longer than the session's limit for a value");
    }
    return execute(sql);
  });
}

Changed Sqlite3Session::change_kept(const KeptStatement& statement, std::span<const Parameter> values) {
  return in_turn([&](::sqlite3* db) {
    return with_kept(statement, values, [&](Sqlite3Statement& prepared) {
      Changed changed{};
      while (prepared.fetch()) {  // to the end of the statement, because it commits there
        if (!prepared.is_null(0)) changed.number = prepared.integer(0);
      }
      changed.rows = static_cast<std::size_t>(sqlite3_changes(db));
      return changed;
    });
  });
}

std::vector<Row> Sqlite3Session::read(const std::string& sql, std::size_t columns) {
  Sqlite3OpenFile::refuse_moved(connection());
  return Sqlite3Statement(connection(), sql).fetch_all(columns);
}

std::vector<Row> Sqlite3Session::read_kept(const KeptStatement& statement, std::span<const Parameter> values,
                                           std::size_t columns) {
  Sqlite3OpenFile::refuse_moved(connection());
  return with_kept(statement, values, [&](Sqlite3Statement& prepared) { return prepared.fetch_all(columns); });
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
