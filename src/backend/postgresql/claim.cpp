// Claims on PostgreSQL.

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "backend/database_error.hpp"
#include "backend/postgresql/array.hpp"
#include "backend/postgresql/session.hpp"
#include "base/hex.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

constexpr auto existing_columns =
    "state, pg_catalog.replace(attempt_token::text, '-', ''), pg_catalog.encode(content_hash, 'hex'), "
    "pg_catalog.encode(result, 'hex'), "
    "(extract(epoch FROM lease_expires_at - pg_catalog.clock_timestamp()) * 1000)::bigint, "
    "coalesce(lease_fence, 0), (extract(epoch FROM pg_catalog.clock_timestamp() - consumed_at) * 1000)::bigint";
constexpr int existing_column_count = 7;

/// Reads the columns of an existing row.
ClaimedRow existing_row(const PostgresqlResult& result, int row) {
  ClaimedRow existing;
  existing.set_state(field(result, row, 0));
  existing.token = detail::from_hex(field(result, row, 1));
  existing.content_hash = detail::from_hex(field(result, row, 2));
  if (PQgetisnull(result.get(), row, 3) == 0) existing.result = detail::from_hex(field(result, row, 3));
  if (PQgetisnull(result.get(), row, 4) == 0) {
    existing.lease_remaining = std::chrono::milliseconds(number_in(field(result, row, 4)));
  }
  existing.lease_fence = number_in(field(result, row, 5));
  existing.age = std::chrono::milliseconds(number_in(field(result, row, 6)));
  return existing;
}

/// Returns the values of a claim. `token` is in hexadecimal digits.
std::array<PostgresqlValue, 5> claim_values(const ClaimRequest& row, const std::string& token) {
  return {row.consumer, row.business_key, or_null(row.message_id), or_null(row.content_hash), token};
}

/// Returns an expression for the column of the token. It tells the trigger that this row is a claim, which only our own
/// COMMIT may commit. The trigger ignores rows that are written without it: the rows of leases, older libraries and
/// restored dumps.
std::string guarded_token(std::string_view token) {
  return fmt::format("CAST(pg_catalog.set_config('txinbox.claim_token', {}, true) AS uuid)", token);
}

/// Whether the error is lock_not_available: a lock was not free in time.
bool is_locked(const PostgresqlResult& result) { return sqlstate(result.get()) == "55P03"; }

}  // namespace

/// Gives the statements new names. It is called after the table's name has changed, or after the server has lost the
/// statements: then we do not know which statement an old name of a pool's connection means. Texts are sent as bytes,
/// because an earlier handler of the batch may have changed client_encoding.
void PostgresqlSession::name_statements() {
  prepared_ = false;
  kept_.clear();
  const std::string suffix = std::to_string(++statement_generation_);
  begin_ = {guard_ + "_begin_" + suffix, begin_sql()};
  savepoint_ = {guard_ + "_savepoint_" + suffix, "SAVEPOINT " + guard_};
  release_ = {guard_ + "_release_" + suffix, "RELEASE SAVEPOINT " + guard_};
  commit_ = {guard_ + "_commit_" + suffix, "COMMIT"};
  // Use a plain read, because a share lock writes to the row and costs 7.4 times as much.
  claim_ = {guard_ + "_claim_" + suffix,
            fmt::format("INSERT INTO {} (consumer, business_key, message_id, content_hash, state, attempt_token) "
                        "VALUES (pg_catalog.convert_from($1, 'UTF8'), pg_catalog.convert_from($2, 'UTF8'), "
                        "pg_catalog.convert_from($3, 'UTF8'), "
                        "$4, 'consumed', {}) ON CONFLICT (consumer, business_key) DO NOTHING",
                        table_, guarded_token("$5"))};
  // One guarded row is enough to refuse a commit, and each costs a call of the trigger's function. The setting that
  // guards a row also guards the rows after it, so it is the last one. $6 is the number of rows.
  claim_all_ = {
      guard_ + "_claim_all_" + suffix,
      fmt::format("INSERT INTO {} (consumer, business_key, message_id, content_hash, state, attempt_token) "
                  "SELECT $1::text, k, i, h, 'consumed', CASE WHEN n = CAST($6::text AS bigint) THEN {} "
                  "ELSE CAST($2::text AS uuid) END FROM ROWS FROM (pg_catalog.unnest($3::text[]), "
                  "pg_catalog.unnest($4::text[]), pg_catalog.unnest($5::bytea[])) WITH ORDINALITY AS u (k, i, "
                  "h, n) ON CONFLICT (consumer, business_key) DO NOTHING RETURNING business_key",
                  table_, guarded_token("$2::text"))};
  // A handler can have taken a role that may not read the inbox. `allow_commit` gives the role back.
  own_role_ = {guard_ + "_own_role_" + suffix,
               fmt::format("SELECT pg_catalog.set_config('txinbox.role', pg_catalog.current_setting('role'), true), "
                           "pg_catalog.set_config('role', {0}, true) WHERE pg_catalog.current_setting('role') "
                           "OPERATOR(pg_catalog.<>) {0}",
                           role_.empty() ? "'none'" : role_)};
  allow_commit_ = {
      guard_ + "_allow_commit_" + suffix,
      fmt::format("SELECT {} FROM {} WHERE consumer = pg_catalog.convert_from($2, 'UTF8') AND "
                  "business_key = pg_catalog.convert_from($3, 'UTF8') AND attempt_token = CAST($1 AS uuid)",
                  allowing_column, table_)};
  allow_all_ = {guard_ + "_allow_all_" + suffix, if_there_sql(allowing_column)};
  existing_ = {guard_ + "_existing_" + suffix,
               fmt::format("SELECT {} FROM {} WHERE consumer = pg_catalog.convert_from($1, 'UTF8') "
                           "AND business_key = pg_catalog.convert_from($2, 'UTF8')",
                           existing_columns, table_)};
  settings_.name = guard_ + "_settings_" + suffix;
  // A lock_timeout of 0 would mean to wait without a limit. The value is 5 ms, because an insert can also wait for a
  // short lock that is not a claim's.
  no_wait_ = {guard_ + "_no_wait_" + suffix,
              "SELECT pg_catalog.set_config('lock_timeout', CASE WHEN pg_catalog.set_config('txinbox.lock_timeout', "
              "pg_catalog.current_setting('lock_timeout'), true) IS NOT NULL THEN '5' END, true)"};
  wait_again_ = {guard_ + "_wait_again_" + suffix,
                 "SELECT pg_catalog.set_config('lock_timeout', pg_catalog.current_setting('txinbox.lock_timeout'), "
                 "true)"};
  if (!pooled_) name_statements_of_caller();
}

/// Names each statement after its text. So the consumers of one connection share the prepared statements, and a service
/// that makes many consumers does not fill the server's memory.
void PostgresqlSession::name_statements_of_caller() {
  for (Statement* each : {&begin_, &savepoint_, &release_, &commit_, &no_wait_, &wait_again_}) each->name.clear();
  for (Statement* each : planned_statements()) {
    each->name = fmt::format("txinbox_{:016x}", std::hash<std::string>()(each->sql));
  }
}

/// If the server refuses, the session goes on without prepared statements. So it does behind a pooler, which reports a
/// process number of its own: PgBouncer closes the connection of a client that prepares a name twice.
void PostgresqlSession::prepare_statements_of_caller() {
  PGconn* pg = connection();
  keeps_prepared_ = false;
  std::string names;
  for (const Statement* each : planned_statements()) {
    names += fmt::format("{}'{}'", names.empty() ? "" : ", ", each->name);
  }
  const auto found =
      try_exec(pg, fmt::format("SELECT pg_catalog.pg_backend_pid(), pg_catalog.array_to_string(ARRAY(SELECT name FROM "
                               "pg_catalog.pg_prepared_statements WHERE name IN ({})), ' ')",
                               names));
  if (!succeeded(found.get()) || field(found, 0, 0) != std::to_string(PQbackendPID(pg))) return;
  const std::string there = field(found, 0, 1);
  std::size_t missing = 0;
  const auto results = run_pipeline(pg, [&](PostgresqlPipeline& pipeline) {
    for (const Statement* each : planned_statements()) {
      if (there.find(each->name) != std::string::npos) continue;
      pipeline.add_preparation(each->name.c_str(), each->sql.c_str());
      ++missing;
    }
  });
  prepared_ = keeps_prepared_ =
      results.size() == missing &&
      std::ranges::all_of(results, [](const PostgresqlResult& each) { return succeeded(each.get()); });
}

void PostgresqlSession::prepare_statements() {
  if (!pooled_) return prepare_statements_of_caller();
  PGconn* pg = connection();
  const std::array<const Statement*, 13> statements = {&begin_,    &savepoint_, &claim_,        &claim_all_, &existing_,
                                                       &release_,  &own_role_,  &allow_commit_, &allow_all_, &commit_,
                                                       &settings_, &no_wait_,   &wait_again_};
  const auto results = run_pipeline(pg, [&](PostgresqlPipeline& pipeline) {
    for (const Statement* each : statements) pipeline.add_preparation(each->name.c_str(), each->sql.c_str());
  });
  if (results.size() < statements.size() || !succeeded(results.back().get())) name_statements();
  require_all(pg, results, statements.size());
  prepared_ = true;
}

/// Runs a pipeline. If the server has lost a prepared statement, gives the statements new names. A service that runs
/// DISCARD ALL can do it again, so a caller's session prepares no more statements then.
std::vector<PostgresqlResult> PostgresqlSession::run(const std::function<void(PostgresqlPipeline&)>& fill) {
  auto results = run_pipeline(connection(), fill);
  if (prepared_ && lost_statements(results)) {
    name_statements();
    keeps_prepared_ = keeps_prepared_ && pooled_;
  }
  return results;
}

/// Runs BEGIN, SAVEPOINT and what `add_claim` adds, in one round trip. Returns the claim's result. If the claim does
/// not wait, the result can be the error lock_not_available.
PostgresqlResult PostgresqlSession::open_with(const std::function<void(PostgresqlPipeline&)>& add_claim, bool waits) {
  PGconn* pg = connection();
  forget_results(pg);
  const std::size_t before = pooled_ ? 2 : 3;
  for (bool again = false;; again = true) {
    if (!prepared_ && keeps_prepared_) prepare_statements();
    const bool prepared = prepared_;
    auto results = run([&](PostgresqlPipeline& pipeline) {
      add(pipeline, begin_);
      add(pipeline, savepoint_);
      if (!pooled_) add(pipeline, same_inbox_);
      if (!waits) add(pipeline, no_wait_);
      add_claim(pipeline);
      if (!waits) add(pipeline, wait_again_);
    });
    if (prepared && lost_statements(results)) {
      if (again) keeps_prepared_ = false;  // a pooler that shares its connections loses the statements each time
      if (PQtransactionStatus(pg) != PQTRANS_IDLE) exec(pg, "ROLLBACK");
      continue;
    }
    require_begun(results);
    if (!pooled_ && results.size() >= before && succeeded(results[before - 1].get())) {
      require_same_inbox(results[before - 1]);
    }
    const std::size_t claim = waits ? before : before + 1;
    if (!waits && results.size() > claim && is_locked(results[claim])) return std::move(results[claim]);
    require_all(pg, results, waits ? claim + 1 : claim + 2);
    return std::move(results[claim]);
  }
}

ClaimReply PostgresqlSession::open_and_claim(const ClaimRequest& row) {
  const std::string token = uuid_of(*row.token);
  const auto claimed =
      open_with([&](PostgresqlPipeline& pipeline) { add(pipeline, claim_, claim_values(row, token)); }, row.waits);
  if (!row.waits && is_locked(claimed)) return {ClaimStatus::locked};
  if (changed_one(claimed)) return {ClaimStatus::inserted};
  auto existing = existing_in(ask_existing(row, true), 2);
  if (!existing) return {ClaimStatus::vanished, {}, true};
  return {ClaimStatus::exists, std::move(*existing), true};
}

ClaimReply PostgresqlSession::claim(const ClaimRequest& row) {
  PGconn* pg = connection();
  const std::string token = uuid_of(*row.token);
  const auto results = run_pipeline(
      pg, [&](PostgresqlPipeline& pipeline) { pipeline.add(claim_.sql.c_str(), claim_values(row, token)); });
  require_all(pg, results, 1);
  if (changed_one(results[0])) return {ClaimStatus::inserted};
  auto existing = existing_in(ask_existing(row, false), 1);
  if (!existing) return {ClaimStatus::vanished};
  return {ClaimStatus::exists, std::move(*existing)};
}

bool PostgresqlSession::take_over(const ClaimRequest& row, const ClaimedRow& seen) {
  execute(fmt::format("SELECT {}", guarded_token(fmt::format("'{}'", uuid_of(*row.token)))));
  return Session::take_over(row, seen);
}

// A statement outside of a transaction sees only committed rows at every isolation level.
std::optional<ClaimedRow> PostgresqlSession::find_committed(const ClaimRequest& row) {
  if (!prepared_) return std::nullopt;
  const auto found = run([&](PostgresqlPipeline& pipeline) {
    add(pipeline, existing_, std::array{row.consumer, row.business_key});
    if (!pooled_) add(pipeline, same_inbox_);
  });
  if (lost_statements(found)) return std::nullopt;
  if (!found.empty() && is_outdated(found[0])) {
    name_statements();
    return std::nullopt;
  }
  auto existing = existing_in(found, pooled_ ? 1 : 2);
  if (!pooled_) require_same_inbox(found[1]);
  return existing;
}

std::vector<PostgresqlResult> PostgresqlSession::ask_existing(const ClaimRequest& row, bool then_roll_back) {
  return run([&](PostgresqlPipeline& pipeline) {
    add(pipeline, existing_, std::array{row.consumer, row.business_key});
    if (then_roll_back) pipeline.add("ROLLBACK");
  });
}

std::optional<ClaimedRow> PostgresqlSession::existing_in(const std::vector<PostgresqlResult>& results,
                                                         std::size_t sent) {
  require_all(connection(), results, sent);
  if (PQntuples(results[0].get()) == 0) return std::nullopt;
  return existing_row(results[0], 0);
}

std::vector<ClaimReply> PostgresqlSession::begin_and_claim_all(std::span<const ClaimRequest> rows) {
  std::vector<std::string_view> keys;
  std::vector<std::string_view> ids;
  std::vector<std::string_view> hashes;
  for (const ClaimRequest& row : rows) {
    keys.push_back(row.business_key);
    ids.push_back(row.message_id);
    hashes.push_back(row.content_hash);
  }
  const std::string key_array = postgresql_array(PostgresqlElement::text, keys);
  const std::string id_array = postgresql_array(PostgresqlElement::text, ids);
  const std::string hash_array = postgresql_array(PostgresqlElement::bytea, hashes);
  const std::string_view consumer = rows[0].consumer;
  const std::string token = uuid_of(*rows[0].token);
  const std::string count = std::to_string(rows.size());
  const auto claimed = open_with([&](PostgresqlPipeline& pipeline) {
    add(pipeline, claim_all_, std::array<PostgresqlValue, 6>{consumer, token, key_array, id_array, hash_array, count});
  });

  const int inserted = PQntuples(claimed.get());
  std::vector<ClaimReply> replies(rows.size(), {ClaimStatus::inserted});
  if (static_cast<std::size_t>(inserted) == rows.size()) return replies;

  std::unordered_set<std::string> ours;
  for (int i = 0; i < inserted; ++i) ours.insert(field(claimed, i, 0));
  PGconn* pg = connection();
  const std::string select =
      fmt::format("SELECT {}, business_key FROM {} WHERE consumer = $1 AND business_key = ANY ($2::text[])",
                  existing_columns, table_);
  // If the row that has the guard is a duplicate, another row gets it, before a handler runs.
  const bool lacks_guard = inserted > 0 && !ours.contains(std::string(rows.back().business_key));
  const std::string guard = fmt::format(
      "UPDATE {} SET attempt_token = {} WHERE consumer = $2::text AND business_key = $3::text AND attempt_token = "
      "CAST($1::text AS uuid)",
      table_, guarded_token("$1::text"));
  const std::string first = inserted > 0 ? field(claimed, 0, 0) : std::string();
  const auto found = run_pipeline(pg, [&](PostgresqlPipeline& pipeline) {
    pipeline.add(select.c_str(), std::array<PostgresqlValue, 2>{consumer, key_array});
    if (lacks_guard) pipeline.add(guard.c_str(), std::array<PostgresqlValue, 3>{token, consumer, first});
  });
  require_all(pg, found, lacks_guard ? 2 : 1);
  if (lacks_guard && !changed_one(found[1])) {
    throw_database_error(postgresql_name, pg, "55000", "txinbox: a claim that was inserted is not there");
  }
  std::unordered_map<std::string, int> row_of;
  for (int i = 0; i < PQntuples(found[0].get()); ++i) row_of.emplace(field(found[0], i, existing_column_count), i);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string key(rows[i].business_key);
    if (ours.contains(key)) continue;
    const auto at = row_of.find(key);
    replies[i] = at == row_of.end() ? ClaimReply{ClaimStatus::vanished}
                                    : ClaimReply{ClaimStatus::exists, existing_row(found[0], at->second)};
  }
  return replies;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
