// Single statements on PostgreSQL: in the open transaction, or each in a transaction of its own.

#include <fmt/format.h>

#include "backend/postgresql/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

std::size_t rows_of(const PostgresqlResult& result) {
  return static_cast<std::size_t>(number_in(PQcmdTuples(result.get())));
}

}  // namespace

std::size_t PostgresqlSession::execute(const std::string& sql) { return rows_of(exec(connection(), sql)); }

/// Prepares the statement at its first use, in a round trip of its own. Returns only its text if the session keeps no
/// statements prepared.
PostgresqlSession::Statement PostgresqlSession::kept(const KeptStatement& statement) {
  if (!pooled_ || !prepared_) return {{}, statement.sql(dialect())};
  if (const auto at = kept_.find(&statement); at != kept_.end()) return {at->second, {}};
  PGconn* pg = connection();
  const std::string name = fmt::format("{}_kept_{}_{}", guard_, statement_generation_, kept_.size());
  const auto results = run_pipeline(pg, [&](PostgresqlPipeline& pipeline) {
    pipeline.add_preparation(name.c_str(), statement.sql(dialect()).c_str());
  });
  require_all(pg, results, 1);
  kept_.emplace(&statement, name);  // the server keeps it even if the transaction is rolled back
  return {name, {}};
}

bool PostgresqlSession::try_run_kept(const KeptStatement& statement, std::span<const Parameter> values) {
  PGconn* pg = connection();
  if (!prepared_ || PQbackendPID(pg) != process_id_) return false;
  const Statement prepared = kept(statement);
  const auto results = run([&](PostgresqlPipeline& pipeline) { add(pipeline, prepared, bytes_of(values)); });
  if (lost_statements(results)) keeps_prepared_ = false;  // the next run on this connection uses no prepared statements
  require_all(pg, results, 1);
  return true;
}

/// Runs a statement. One that writes is in a transaction of its own, as a pool's session is read-only otherwise.
/// A statement that is not prepared needs no other one that is: another user may have removed them. Returns all
/// results, see `result_of`.
std::vector<PostgresqlResult> PostgresqlSession::run_alone(Access access, const Statement& statement,
                                                           std::span<const PostgresqlValue> values) {
  PGconn* pg = connection();
  const bool writes = access == Access::write;
  const bool prepared = !statement.name.empty();
  auto results = run([&](PostgresqlPipeline& pipeline) {
    if (writes) add(pipeline, prepared ? begin_ : Statement{{}, begin_.sql});
    add(pipeline, statement, values);
    if (writes) add(pipeline, prepared ? commit_ : Statement{{}, commit_.sql});
  });
  if (writes && PQtransactionStatus(pg) != PQTRANS_IDLE) try_exec(pg, "ROLLBACK");
  return results;
}

/// Returns the result of the statement that `run_alone` has run. Throws its error.
PostgresqlResult PostgresqlSession::result_of(Access access, std::vector<PostgresqlResult> results) {
  const bool writes = access == Access::write;
  if (writes) require_begun(results);
  require_all(connection(), results, writes ? 3 : 1);
  return std::move(results[writes ? 1 : 0]);
}

/// Runs a statement with `run_alone`, again if it is no longer prepared.
PostgresqlResult PostgresqlSession::run_kept(Access access, const KeptStatement& statement,
                                             std::span<const Parameter> parameters) {
  const auto values = bytes_of(parameters);
  for (bool again = false;; again = true) {
    if (pooled_ && !prepared_ && keeps_prepared_) prepare_statements();
    const bool prepared = prepared_;
    auto results = run_alone(access, kept(statement), values);
    const std::size_t at = access == Access::write ? 1 : 0;
    const bool outdated = results.size() > at && is_outdated(results[at]);
    if (!prepared || !(outdated || lost_statements(results))) return result_of(access, std::move(results));
    if (outdated) name_statements();
    if (again) keeps_prepared_ = false;  // a pooler that shares its connections loses the statements each time
  }
}

/// Runs one statement in a transaction of its own, which may write. Returns the result.
PostgresqlResult PostgresqlSession::change_with(const std::string& sql) {
  if (!refuses_writes_) return exec(connection(), sql);
  return result_of(Access::write, run_alone(Access::write, {{}, sql}, {}));
}

std::size_t PostgresqlSession::change(const std::string& sql) { return rows_of(change_with(sql)); }

Changed PostgresqlSession::change_kept(const KeptStatement& statement, std::span<const Parameter> values) {
  const auto result = run_kept(Access::write, statement, values);
  Changed changed{.rows = rows_of(result), .number = {}};
  if (PQntuples(result.get()) > 0 && PQgetisnull(result.get(), 0, 0) == 0)
    changed.number = number_in(field(result, 0, 0));
  return changed;
}

std::vector<Row> PostgresqlSession::read(const std::string& sql, std::size_t columns) {
  return postgresql_query(connection(), sql, columns);
}

std::vector<Row> PostgresqlSession::read_kept(const KeptStatement& statement, std::span<const Parameter> values,
                                              std::size_t columns) {
  return postgresql_rows(run_kept(Access::read, statement, values), columns);
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
