// Single statements on MariaDB and MySQL: in the open transaction, or each in a transaction of its own.

#include <mysqld_error.h>

#include <utility>

#include "backend/mysql/parts.hpp"
#include "backend/mysql/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

std::size_t MysqlSession::execute(const std::string& sql) {
  MYSQL* db = connection();
  exec(db, sql);
  return static_cast<std::size_t>(mysql_affected_rows(db));
}

/// Returns the statement, prepared. Null on a caller's session, and if the server prepares no more statements.
MysqlStatement* MysqlSession::prepared_kept(const KeptStatement& statement) {
  MYSQL* db = connection();
  if (!pooled_ || !is_configured_connection(db)) return nullptr;
  MysqlStatement& kept = kept_[&statement];
  return kept.prepared() || kept.try_prepare(db, statement.sql(dialect())) ? &kept : nullptr;
}

/// Runs the statement. If it is not prepared, its text has the values.
MysqlSession::KeptReply MysqlSession::run_kept(const KeptStatement& statement, std::span<const Parameter> values) {
  const auto bytes = bytes_of(values);
  MysqlStatement* prepared = prepared_kept(statement);
  unsigned error = prepared != nullptr ? prepared->try_run(bytes) : 0;
  if (error == ER_UNKNOWN_STMT_HANDLER) {  // a proxy has reset the connection
    prepared->close();
    prepared = prepared_kept(statement);
    error = prepared != nullptr ? prepared->try_run(bytes) : 0;
  }
  KeptReply reply;
  if (prepared != nullptr) {
    if (error != 0) prepared->throw_error();
    reply.changed = {.rows = prepared->affected_rows(), .number = prepared->insert_id()};
    reply.rows = prepared->take_reply().rows;
  } else {
    MYSQL* db = connection();
    MysqlReply of_text;
    if (try_query(db, mysql_text(statement, schema_, values), of_text) != 0) throw_mysql_error(db);
    reply.changed = {.rows = static_cast<std::size_t>(mysql_affected_rows(db)),
                     .number = static_cast<std::int64_t>(mysql_insert_id(db))};
    reply.rows = std::move(of_text.rows);
  }
  if (reply.changed.rows == 0) reply.changed.number.reset();
  return reply;
}

/// Calls `run`, which runs a statement as a transaction of its own.
template <class Run>
auto MysqlSession::alone(const Run& run) {
  MYSQL* db = connection();
  const bool autocommit = pooled_ || autocommit_;
  try {
    auto result = run();
    if (!autocommit) exec(db, "COMMIT");
    return result;
  } catch (...) {
    if (!autocommit) try_exec(db, "ROLLBACK");
    throw;
  }
}

bool MysqlSession::try_run_kept(const KeptStatement& statement, std::span<const Parameter> values) {
  if (!pooled_ || !is_configured_connection(connection())) return false;
  (void)run_kept(statement, values);
  return true;
}

std::size_t MysqlSession::change(const std::string& sql) {
  return alone([&] { return execute(sql); });
}

Changed MysqlSession::change_kept(const KeptStatement& statement, std::span<const Parameter> values) {
  return alone([&] { return run_kept(statement, values).changed; });
}

std::vector<Row> MysqlSession::read(const std::string& sql, std::size_t /*columns*/) {
  return alone([&] { return query_rows(connection(), sql); });
}

std::vector<Row> MysqlSession::read_kept(const KeptStatement& statement, std::span<const Parameter> values,
                                         std::size_t /*columns*/) {
  return alone([&] { return run_kept(statement, values).rows; });
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
