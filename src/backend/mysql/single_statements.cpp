// Single statements on MariaDB and MySQL: in the open transaction, or each in a transaction of its own.

#include "backend/mysql/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

std::size_t MysqlSession::execute(const std::string& sql) {
  MYSQL* db = connection();
  exec(db, sql);
  return static_cast<std::size_t>(mysql_affected_rows(db));
}

/// Runs the statement, and calls `use` with it. A pool keeps the statement prepared.
template <class Use>
auto MysqlSession::with_kept(const KeptStatement& statement, std::span<const Parameter> values, const Use& use) {
  MYSQL* db = connection();
  MysqlStatement unkept;
  MysqlStatement& prepared = pooled_ && is_configured_connection(db) ? kept_[&statement] : unkept;
  if (!prepared.prepared()) prepared.prepare(db, statement.sql(dialect()));
  std::vector<std::string_view> bytes;
  bytes.reserve(values.size());
  for (const Parameter& each : values) bytes.push_back(each.value);
  if (prepared.try_run(bytes) != 0) prepared.throw_error();
  return use(prepared);
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
  with_kept(statement, values, [](MysqlStatement& prepared) { (void)prepared.take_reply(); });
  return true;
}

std::size_t MysqlSession::change(const std::string& sql) {
  return alone([&] { return execute(sql); });
}

Changed MysqlSession::change_kept(const KeptStatement& statement, std::span<const Parameter> values) {
  return alone([&] {
    return with_kept(statement, values, [](MysqlStatement& prepared) {
      Changed changed{.rows = prepared.affected_rows(), .number = {}};
      if (changed.rows > 0) changed.number = prepared.insert_id();
      (void)prepared.take_reply();
      return changed;
    });
  });
}

std::vector<Row> MysqlSession::read(const std::string& sql, std::size_t /*columns*/) {
  return alone([&] { return query_rows(connection(), sql); });
}

std::vector<Row> MysqlSession::read_kept(const KeptStatement& statement, std::span<const Parameter> values,
                                         std::size_t /*columns*/) {
  return alone([&] {
    return with_kept(statement, values, [](MysqlStatement& prepared) { return prepared.take_reply().rows; });
  });
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
