// The guarded transaction on PostgreSQL.

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "backend/database_error.hpp"
#include "backend/postgresql/array.hpp"
#include "backend/postgresql/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

/// Whether the error is no_active_sql_transaction, in_failed_sql_transaction or invalid_savepoint. Then the guard no
/// longer exists.
bool says_guard_is_gone(std::string_view state) { return state == "25P01" || state == "25P02" || state == "3B001"; }

}  // namespace

std::string uuid_of(const Token& token) {
  std::string text = token.hex();
  for (const std::size_t hyphen : {8U, 13U, 18U, 23U}) text.insert(hyphen, 1, '-');
  return text;
}

void PostgresqlSession::add(PostgresqlPipeline& pipeline, const Statement& statement,
                            std::span<const PostgresqlValue> values) const {
  if (prepared_ && !statement.name.empty()) {
    pipeline.add_prepared(statement.name.c_str(), values);
  } else {
    pipeline.add(statement.sql.c_str(), values);
  }
}

bool PostgresqlSession::in_transaction() {
  PGconn* pg = connection();
  require_connected(pg);
  return PQtransactionStatus(pg) != PQTRANS_IDLE;
}

bool PostgresqlSession::guard_likely_intact() noexcept {
  PGconn* pg = native();
  return pg != nullptr && PQtransactionStatus(pg) == PQTRANS_INTRANS;
}

/// Throws if a standby refused the BEGIN.
void PostgresqlSession::require_begun(const std::vector<PostgresqlResult>& results) const {
  if (refuses_writes_ && !results.empty()) refuse_standby(native(), results[0].get());
}

void PostgresqlSession::begin() {
  PGconn* pg = connection();
  forget_results(pg);
  const auto results = run_pipeline(pg, [&](PostgresqlPipeline& pipeline) {
    pipeline.add(begin_.sql.c_str());
    pipeline.add(savepoint_.sql.c_str());
    if (!pooled_) pipeline.add(same_inbox_.sql.c_str());
  });
  require_begun(results);
  require_all(pg, results, pooled_ ? 2 : 3);
  if (!pooled_) require_same_inbox(results[2]);
}

/// Returns a statement that writes only the result: until now, the trigger has refused to commit the claim. Texts are
/// sent as hexadecimal digits, which mean the same bytes under every client_encoding that the handler may have set.
std::string PostgresqlSession::store_sql(const ClaimToCommit& claim) const {
  return fmt::format("UPDATE {} SET result = {} WHERE {}", table_, dialect().bytes(*claim.result),
                     dialect().is_key(claim.consumer, claim.business_key));
}

/// Allows the trigger to commit the claims if all of them are still there. A handler can have deleted its own claim.
void PostgresqlSession::allow_commit(PostgresqlPipeline& pipeline, std::span<const ClaimToCommit> claims,
                                     bool gives_role_back) const {
  if (claims.empty()) return;
  if (gives_role_back) {  // deferred triggers of the user run with the handler's role
    const std::string role =
        "CASE WHEN pg_catalog.current_setting('txinbox.role', true) OPERATOR(pg_catalog.<>) '' THEN "
        "pg_catalog.set_config('role', pg_catalog.current_setting('txinbox.role'), true) END";
    add_if_there(pipeline, {{}, if_there_sql(fmt::format("{}, {}", allowing_column, role))}, claims);
    return;
  }
  if (claims.size() == 1) {
    const std::string token = uuid_of(*claims.front().token);
    add(pipeline, allow_commit_,
        std::array<PostgresqlValue, 3>{token, claims.front().consumer, claims.front().business_key});
    return;
  }
  add_if_there(pipeline, allow_all_, claims);
}

/// Returns a statement that selects these columns if all claims are there, and otherwise no row. $1 is the token, $2
/// and $3 are the keys, and $4 is their number.
///
/// OFFSET 0 makes the server look each key up in the index. Otherwise a plan that was made for a small table reads the
/// whole table, also when it has grown.
std::string PostgresqlSession::if_there_sql(std::string_view columns) const {
  return fmt::format(
      "SELECT {} WHERE (SELECT pg_catalog.count(*) FROM ROWS "
      "FROM (pg_catalog.unnest(CAST($2 AS bytea[])), pg_catalog.unnest(CAST($3 AS bytea[]))) AS u (c, k), "
      "LATERAL (SELECT 1 FROM {} WHERE consumer = pg_catalog.convert_from(u.c, 'UTF8') AND "
      "business_key = pg_catalog.convert_from(u.k, 'UTF8') AND attempt_token = CAST(CAST($1 AS text) AS uuid) "
      "OFFSET 0) AS t) = CAST(CAST($4 AS text) AS bigint)",
      columns, table_);
}

/// Adds a statement of `if_there_sql`.
void PostgresqlSession::add_if_there(PostgresqlPipeline& pipeline, const Statement& statement,
                                     std::span<const ClaimToCommit> claims) const {
  std::vector<std::string_view> consumers;
  std::vector<std::string_view> keys;
  for (const ClaimToCommit& each : claims) {
    consumers.push_back(each.consumer);
    keys.push_back(each.business_key);
  }
  const std::string token = uuid_of(*claims.front().token);
  const std::string consumer_array = postgresql_array(PostgresqlElement::bytea, consumers);
  const std::string key_array = postgresql_array(PostgresqlElement::bytea, keys);
  const std::string count = std::to_string(claims.size());
  add(pipeline, statement, std::array<PostgresqlValue, 4>{token, consumer_array, key_array, count});
}

bool PostgresqlSession::confirm(std::span<const ClaimToCommit> claims) {
  for (const ClaimToCommit& each : claims) {
    if (each.result && !changed_one(exec(connection(), store_sql(each)))) return false;
  }
  if (claims.empty()) return true;
  const bool has_role = takes_role();
  const auto found = run([&](PostgresqlPipeline& pipeline) {
    if (has_role) add(pipeline, own_role_);
    add_if_there(pipeline, {{}, if_there_sql("1")}, claims);
  });
  require_all(connection(), found, has_role ? 2 : 1);
  return PQntuples(found.back().get()) == 1;
}

CommitStatus PostgresqlSession::commit(std::span<const ClaimToCommit> claims, std::span<const std::string> writes) {
  PGconn* pg = native();
  may_have_committed_ = false;
  if (pg != nullptr) require_connected(pg);
  // In an aborted transaction, COMMIT would roll back without an error.
  if (pg == nullptr || PQtransactionStatus(pg) != PQTRANS_INTRANS) return CommitStatus::not_ours;

  const bool takes_role = this->takes_role();
  std::size_t sent = 0;
  may_have_committed_ = true;
  const auto replies = run([&](PostgresqlPipeline& pipeline) {
    add(pipeline, release_);
    if (takes_role) add(pipeline, own_role_);
    for (const ClaimToCommit& each : claims) {
      if (!each.result) continue;
      pipeline.add(store_sql(each).c_str());
      ++sent;
    }
    for (const std::string& sql : writes) pipeline.add(sql.c_str());
    allow_commit(pipeline, claims, takes_role);
    add(pipeline, commit_);
    sent += writes.size() + (claims.empty() ? 2 : 3) + (takes_role ? 1 : 0);
    if (pooled_) add(pipeline, settings_);
  });
  // If the release of the savepoint fails, the server does not run the statements after it.
  may_have_committed_ = replies.empty() || sqlstate(replies[0].get()).empty();

  const std::size_t commit_index = sent - 1;
  const bool committed = replies.size() > commit_index && succeeded(replies[commit_index].get()) &&
                         std::string_view(PQcmdStatus(replies[commit_index].get())) == "COMMIT";
  if (committed) {
    if (pooled_ && !settings_restored(replies))
      process_id_ = -1;  // the session is not intact now, so the pool closes
                         // it
    return CommitStatus::committed;
  }
  if (!replies.empty() && says_guard_is_gone(sqlstate(replies[0].get()))) return CommitStatus::not_ours;
  const bool has_reply = !claims.empty() && replies.size() >= commit_index;
  const PGresult* allowed = has_reply ? replies[commit_index - 1].get() : nullptr;
  if (PQresultStatus(allowed) == PGRES_TUPLES_OK && PQntuples(allowed) == 0) return CommitStatus::not_ours;
  if (pooled_ && !takes_role && sqlstate(allowed) == "42501") {
    takes_role_ = true;  // the handler has set a role with the function set_config
    throw_database_error(postgresql_name, pg, "40001", "txinbox: the handler's role may not read the inbox");
  }
  if (lost_statements(replies)) keeps_prepared_ = false;  // the next run on this connection uses no prepared statements
  require_all(pg, replies, sent);
  return CommitStatus::not_ours;  // the server answered COMMIT with ROLLBACK
}

/// Whether the settings are restored. `replies` are the replies of a pipeline that has committed, and that has read the
/// settings at its end.
bool PostgresqlSession::settings_restored(const std::vector<PostgresqlResult>& replies) {
  PGconn* pg = native();
  if (PQstatus(pg) != CONNECTION_OK) return false;
  const PGresult* asked = replies.back().get();
  if (PQresultStatus(asked) == PGRES_TUPLES_OK && settings_are_remembered(asked)) return true;
  return succeeded(try_exec(pg, restore_).get());
}

std::optional<std::string> PostgresqlSession::code_of_handler_error() noexcept {
  PGconn* pg = native();
  if (pg == nullptr) return std::nullopt;
  if (PQstatus(pg) != CONNECTION_OK) return "08006";
  // If a transaction is open and not aborted, the handler has rolled back to a savepoint and continued.
  const PGTransactionStatusType status = PQtransactionStatus(pg);
  if (status != PQTRANS_INERROR && status != PQTRANS_IDLE) return std::nullopt;
  std::string code = watched_sqlstate(pg);
  if (code.empty()) return std::nullopt;
  return code;
}

RollbackStatus PostgresqlSession::roll_back() noexcept {
  PGconn* pg = native();
  if (pg == nullptr || PQstatus(pg) != CONNECTION_OK) return RollbackStatus::failed;
  if (pooled_ && PQbackendPID(pg) != process_id_) return RollbackStatus::failed;
  const std::string end = pooled_ ? "ROLLBACK; " + restore_ : "ROLLBACK";
  if (PQtransactionStatus(pg) == PQTRANS_IDLE) {
    const bool restored = !pooled_ || succeeded(try_exec(pg, restore_).get());
    return restored ? RollbackStatus::not_ours : RollbackStatus::failed;
  }
  if (succeeded(try_exec(pg, fmt::format("ROLLBACK TO SAVEPOINT {}; {}", guard_, end)).get())) {
    return RollbackStatus::ours;
  }
  return succeeded(try_exec(pg, end).get()) ? RollbackStatus::not_ours : RollbackStatus::failed;
}

/// Runs statements, the first of which needs one of our savepoints. Returns the result of the last one, or null if the
/// savepoint no longer exists.
PostgresqlResult PostgresqlSession::run_on_savepoint(const std::string& sql) {
  PGconn* pg = native();
  if (pg == nullptr) return nullptr;  // the handler has closed the session
  require_connected(pg);
  if (!guard_likely_intact()) return nullptr;
  auto result = try_exec(pg, sql);
  if (succeeded(result.get())) return result;
  if (says_guard_is_gone(sqlstate(result.get()))) return nullptr;
  throw_postgresql_error(pg, result.get());
}

bool PostgresqlSession::runs_on_savepoint(const std::string& sql) { return run_on_savepoint(sql) != nullptr; }

bool PostgresqlSession::verify_guard() {
  return runs_on_savepoint(fmt::format("RELEASE SAVEPOINT {0}; SAVEPOINT {0}", guard_));
}

void PostgresqlSession::savepoint() { exec(connection(), "SAVEPOINT " + step_); }

bool PostgresqlSession::reads_latest_commits() {
  const auto rows = postgresql_query(connection(), "SELECT pg_catalog.current_setting('transaction_isolation')", 1);
  return !rows.empty() && rows.front()[0] == "read committed";
}

bool PostgresqlSession::release_savepoint(const ClaimToCommit* claim) {
  const std::string release = "RELEASE SAVEPOINT " + step_;
  if (claim == nullptr) return runs_on_savepoint(release);
  // A handler that has deleted its own claim must not fail the others of its batch, nor must one that has taken a role.
  const std::string own_role = takes_role() ? "; " + own_role_.sql : std::string();
  const std::string is_claim = fmt::format(
      "{} AND attempt_token = '{}'", dialect().is_key(claim->consumer, claim->business_key), uuid_of(*claim->token));
  const std::string find = claim->result ? fmt::format("UPDATE {} SET result = {} WHERE {} RETURNING 1", table_,
                                                       dialect().bytes(*claim->result), is_claim)
                                         : fmt::format("SELECT 1 FROM {} WHERE {}", table_, is_claim);
  const auto found = run_on_savepoint(fmt::format("{}{}; {}", release, own_role, find));
  return found && PQntuples(found.get()) == 1;
}

bool PostgresqlSession::rollback_to_savepoint() noexcept {
  PGconn* pg = native();
  if (pg == nullptr || PQtransactionStatus(pg) == PQTRANS_IDLE) return false;
  return succeeded(try_exec(pg, fmt::format("ROLLBACK TO SAVEPOINT {0}; RELEASE SAVEPOINT {0}", step_)).get());
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
