// The guarded transaction on PostgreSQL.

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "backend/postgresql/array.hpp"
#include "backend/postgresql/session.hpp"
#include "base/hex.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

/// no_active_sql_transaction, in_failed_sql_transaction, invalid_savepoint: the guard is gone.
bool says_guard_is_gone(std::string_view state) { return state == "25P01" || state == "25P02" || state == "3B001"; }

/// What a pooler or a handler's DEALLOCATE leaves of a prepared statement.
constexpr std::string_view unknown_statement = "26000";

constexpr auto existing_columns =
    "state, replace(attempt_token::text, '-', ''), encode(content_hash, 'hex'), encode(result, 'hex'), "
    "(extract(epoch FROM lease_expires_at - clock_timestamp()) * 1000)::bigint, "
    "coalesce(lease_fence, 0), (extract(epoch FROM clock_timestamp() - consumed_at) * 1000)::bigint";
constexpr int existing_column_count = 7;

/// Reads those columns.
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

PostgresqlValue or_null(std::string_view text) { return text.empty() ? PostgresqlValue() : text; }

/// `token`: in hexadecimal digits.
std::array<PostgresqlValue, 5> claim_values(const ClaimRequest& row, const std::string& token) {
  return {row.consumer, row.business_key, or_null(row.message_id), or_null(row.content_hash), token};
}

bool lost_statements(const std::vector<PostgresqlResult>& results) {
  return std::any_of(results.begin(), results.end(),
                     [](const PostgresqlResult& each) { return sqlstate(each.get()) == unknown_statement; });
}

bool changed_one(const PostgresqlResult& result) { return std::string_view(PQcmdTuples(result.get())) == "1"; }

/// Of the statements of a pipeline, in which none may fail.
void require(PGconn* pg, const std::vector<PostgresqlResult>& results, std::size_t sent) {
  for (const PostgresqlResult& each : results) {
    if (!succeeded(each.get())) throw_postgresql_error(pg, each.get());
  }
  if (results.size() < sent) throw_postgresql_error(pg, nullptr);
}

/// A token as the server writes it, for the settings that the trigger of V5__guard.sql compares.
std::string uuid_of(const Token& token) {
  std::string text = token.hex();
  for (const std::size_t hyphen : {8U, 13U, 18U, 23U}) text.insert(hyphen, 1, '-');
  return text;
}

/// In an expression for the token's column: tells the trigger that this row is a claim, which only the transaction's
/// own end may commit. Rows that are written without it are not subject to the trigger: those of leases, of older
/// libraries, of a restored dump.
std::string guarded_token(std::string_view token) {
  return fmt::format("CAST(pg_catalog.set_config('txinbox.claim_token', {}, true) AS uuid)", token);
}

}  // namespace

/// After each change of the table's name, and when the server has lost them: under new names, since what
/// an old one stands for is not known. Texts go as bytes: an earlier handler of a batch may have changed
/// client_encoding.
void PostgresqlSession::name_statements() {
  prepared_ = false;
  const std::string suffix = std::to_string(++statement_generation_);
  begin_ = {guard_ + "_begin_" + suffix, begin_sql()};
  savepoint_ = {guard_ + "_savepoint_" + suffix, "SAVEPOINT " + guard_};
  release_ = {guard_ + "_release_" + suffix, "RELEASE SAVEPOINT " + guard_};
  commit_ = {guard_ + "_commit_" + suffix, "COMMIT"};
  // A plain read: a share lock would write to the row (x7.4).
  claim_ = {guard_ + "_claim_" + suffix,
            fmt::format("INSERT INTO {} (consumer, business_key, message_id, content_hash, state, attempt_token) "
                        "VALUES (convert_from($1, 'UTF8'), convert_from($2, 'UTF8'), convert_from($3, 'UTF8'), "
                        "$4, 'consumed', {}) ON CONFLICT (consumer, business_key) DO NOTHING",
                        table_, guarded_token("$5"))};
  allow_commit_ = {guard_ + "_allow_commit_" + suffix,
                   "SELECT pg_catalog.set_config('txinbox.commit_token', $1, true)"};
  existing_ = {guard_ + "_existing_" + suffix,
               fmt::format("SELECT {} FROM {} WHERE consumer = convert_from($1, 'UTF8') "
                           "AND business_key = convert_from($2, 'UTF8')",
                           existing_columns, table_)};
  settings_.name = guard_ + "_settings_" + suffix;
}

void PostgresqlSession::prepare_statements() {
  PGconn* pg = connection();
  const std::array<const Statement*, 8> statements = {&begin_,   &savepoint_,    &claim_,  &existing_,
                                                      &release_, &allow_commit_, &commit_, &settings_};
  const auto results = run_pipeline(pg, [&](PostgresqlPipeline& pipeline) {
    for (const Statement* each : statements) pipeline.add_preparation(each->name.c_str(), each->sql.c_str());
  });
  if (results.size() < statements.size() || !succeeded(results.back().get())) name_statements();
  require(pg, results, statements.size());
  prepared_ = true;
}

void PostgresqlSession::add(PostgresqlPipeline& pipeline, const Statement& statement,
                            std::span<const PostgresqlValue> values) const {
  if (prepared_) {
    pipeline.add_prepared(statement.name.c_str(), values);
  } else {
    pipeline.add(statement.sql.c_str(), values);
  }
}

bool PostgresqlSession::in_transaction() {
  PGconn* pg = connection();
  if (PQstatus(pg) != CONNECTION_OK) throw_postgresql_error(pg, nullptr);
  return PQtransactionStatus(pg) != PQTRANS_IDLE;
}

bool PostgresqlSession::guard_likely_intact() noexcept {
  PGconn* pg = postgresql_native(sql_);
  return pg != nullptr && PQtransactionStatus(pg) == PQTRANS_INTRANS;
}

// A caller's own isolation level stays; a pool's sessions are READ COMMITTED by configuration.
/// A standby refuses to begin a transaction that may write with feature_not_supported.
void PostgresqlSession::require_begun(const std::vector<PostgresqlResult>& results) const {
  if (!refuses_writes_ || results.empty() || sqlstate(results[0].get()) != "0A000") return;
  throw soci::postgresql_soci_error("txinbox: the server is read-only: it is a standby", "25006");
}

void PostgresqlSession::begin() {
  PGconn* pg = connection();
  const auto results = run_pipeline(pg, [&](PostgresqlPipeline& pipeline) {
    pipeline.add(begin_.sql.c_str());
    pipeline.add(savepoint_.sql.c_str());
  });
  require_begun(results);
  require(pg, results, 2);
}

bool PostgresqlSession::take_over(const ClaimRequest& row) {
  execute(fmt::format("SELECT {}", guarded_token(fmt::format("'{}'", uuid_of(*row.token)))));
  return Session::take_over(row);
}

/// Runs a pipeline. Statements that turn out to be lost are not asked for again under these names.
std::vector<PostgresqlResult> PostgresqlSession::run(const std::function<void(PostgresqlPipeline&)>& fill) {
  auto results = run_pipeline(connection(), fill);
  if (prepared_ && lost_statements(results)) name_statements();
  return results;
}

/// BEGIN, SAVEPOINT and what `add_claim` adds, in one round trip. Returns the claim's result.
PostgresqlResult PostgresqlSession::open_with(const std::function<void(PostgresqlPipeline&)>& add_claim) {
  PGconn* pg = connection();
  for (bool again = false;; again = true) {
    if (pooled_ && !prepared_ && keeps_prepared_) prepare_statements();
    const bool prepared = prepared_;
    auto results = run([&](PostgresqlPipeline& pipeline) {
      add(pipeline, begin_);
      add(pipeline, savepoint_);
      add_claim(pipeline);
    });
    if (prepared && lost_statements(results)) {
      keeps_prepared_ = !again;  // a pooler that shares its connections loses them each time
      if (PQtransactionStatus(pg) != PQTRANS_IDLE) exec(pg, "ROLLBACK");
      continue;
    }
    require_begun(results);
    require(pg, results, 3);
    return std::move(results.back());
  }
}

ClaimReply PostgresqlSession::open_and_claim(const ClaimRequest& row) {
  const std::string token = uuid_of(*row.token);
  const auto claimed =
      open_with([&](PostgresqlPipeline& pipeline) { add(pipeline, claim_, claim_values(row, token)); });
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
  require(pg, results, 1);
  if (changed_one(results[0])) return {ClaimStatus::inserted};
  auto existing = existing_in(ask_existing(row, false), 1);
  if (!existing) return {ClaimStatus::vanished};
  return {ClaimStatus::exists, std::move(*existing)};
}

// A caller's session may be at an isolation level of its own.
std::optional<ClaimedRow> PostgresqlSession::find_committed(const ClaimRequest& row) {
  if (!prepared_) return std::nullopt;
  const auto found = ask_existing(row, false);
  if (lost_statements(found)) return std::nullopt;
  return existing_in(found, 1);
}

std::vector<PostgresqlResult> PostgresqlSession::ask_existing(const ClaimRequest& row, bool then_roll_back) {
  return run([&](PostgresqlPipeline& pipeline) {
    add(pipeline, existing_, std::array{row.consumer, row.business_key});
    if (then_roll_back) pipeline.add("ROLLBACK");
  });
}

std::optional<ClaimedRow> PostgresqlSession::existing_in(const std::vector<PostgresqlResult>& results,
                                                         std::size_t sent) {
  require(connection(), results, sent);
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
  const std::string insert = fmt::format(
      "INSERT INTO {} (consumer, business_key, message_id, content_hash, state, attempt_token) "
      "SELECT $1::text, k, i, h, 'consumed', {} FROM unnest($3::text[], $4::text[], $5::bytea[]) AS u (k, i, h) "
      "ON CONFLICT (consumer, business_key) DO NOTHING RETURNING business_key",
      table_, guarded_token("$2"));
  const std::string token = uuid_of(*rows[0].token);
  const auto claimed = open_with([&](PostgresqlPipeline& pipeline) {
    pipeline.add(insert.c_str(), std::array<PostgresqlValue, 5>{consumer, token, key_array, id_array, hash_array});
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
  const auto found = run_pipeline(pg, [&](PostgresqlPipeline& pipeline) {
    pipeline.add(select.c_str(), std::array<PostgresqlValue, 2>{consumer, key_array});
  });
  require(pg, found, 1);
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

/// The trigger keeps a claim from being committed before this, so that only its result is left to write. Texts go as
/// hexadecimal digits: whatever client_encoding the handler has set, the bytes are the same.
std::string PostgresqlSession::store_sql(const ClosingClaim& claim) const {
  return fmt::format(
      "UPDATE {} SET result = decode('{}', 'hex') WHERE consumer = convert_from(decode('{}', 'hex'), 'UTF8') AND "
      "business_key = convert_from(decode('{}', 'hex'), 'UTF8')",
      table_, detail::to_hex(*claim.result), detail::to_hex(claim.consumer), detail::to_hex(claim.business_key));
}

bool PostgresqlSession::confirm(std::span<const ClosingClaim> claims) {
  for (const ClosingClaim& each : claims) {
    if (each.result && !changed_one(exec(connection(), store_sql(each)))) return false;
  }
  return true;
}

CommitStatus PostgresqlSession::commit(std::span<const ClosingClaim> claims) {
  PGconn* pg = postgresql_native(sql_);
  // An aborted transaction would turn COMMIT into ROLLBACK without an error.
  if (pg == nullptr || PQtransactionStatus(pg) != PQTRANS_INTRANS) return CommitStatus::not_ours;

  const std::string token = claims.empty() ? std::string() : uuid_of(*claims.front().token);
  std::size_t sent = 0;
  may_have_committed_ = true;
  const auto replies = run([&](PostgresqlPipeline& pipeline) {
    add(pipeline, release_);
    for (const ClosingClaim& each : claims) {
      if (!each.result) continue;
      pipeline.add(store_sql(each).c_str());
      ++sent;
    }
    add(pipeline, allow_commit_, std::array<PostgresqlValue, 1>{token});
    add(pipeline, commit_);
    sent += 3;
    if (pooled_) add(pipeline, settings_);
  });
  // Answered with an error, the release has kept the rest from running.
  may_have_committed_ = replies.empty() || sqlstate(replies[0].get()).empty();

  const std::size_t commit_index = sent - 1;
  const bool committed = replies.size() > commit_index && succeeded(replies[commit_index].get()) &&
                         std::string_view(PQcmdStatus(replies[commit_index].get())) == "COMMIT";
  if (committed) {
    if (pooled_ && !settings_restored(replies)) process_id_ = -1;  // not intact: the pool closes it
    return CommitStatus::committed;
  }
  if (!replies.empty() && says_guard_is_gone(sqlstate(replies[0].get()))) return CommitStatus::not_ours;
  if (lost_statements(replies)) keeps_prepared_ = false;  // the next run on this connection does without
  require(pg, replies, sent);
  return CommitStatus::not_ours;  // COMMIT answered ROLLBACK
}

/// `replies` of a pipeline that committed and asked for the settings at its end.
bool PostgresqlSession::settings_restored(const std::vector<PostgresqlResult>& replies) {
  PGconn* pg = postgresql_native(sql_);
  if (PQstatus(pg) != CONNECTION_OK) return false;
  const PGresult* asked = replies.back().get();
  if (PQresultStatus(asked) == PGRES_TUPLES_OK && settings_are_remembered(asked)) return true;
  return succeeded(try_exec(pg, restore_).get());
}

RollbackStatus PostgresqlSession::roll_back() noexcept {
  PGconn* pg = postgresql_native(sql_);
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

/// Runs what needs one of our savepoints. False: it is gone.
bool PostgresqlSession::runs_on_savepoint(const std::string& sql) {
  if (!guard_likely_intact()) return false;
  const auto result = try_exec(connection(), sql);
  if (succeeded(result.get())) return true;
  if (says_guard_is_gone(sqlstate(result.get()))) return false;
  throw_postgresql_error(connection(), result.get());
}

bool PostgresqlSession::verify_guard() {
  return runs_on_savepoint(fmt::format("RELEASE SAVEPOINT {0}; SAVEPOINT {0}", guard_));
}

void PostgresqlSession::savepoint() { exec(connection(), "SAVEPOINT " + step_); }

bool PostgresqlSession::release_savepoint(const ClosingClaim* /*born consumed*/) {
  return runs_on_savepoint("RELEASE SAVEPOINT " + step_);
}

bool PostgresqlSession::rollback_to_savepoint() noexcept {
  PGconn* pg = postgresql_native(sql_);
  if (pg == nullptr || PQtransactionStatus(pg) == PQTRANS_IDLE) return false;
  return succeeded(try_exec(pg, fmt::format("ROLLBACK TO SAVEPOINT {0}; RELEASE SAVEPOINT {0}", step_)).get());
}

std::size_t PostgresqlSession::execute(const std::string& sql) {
  return static_cast<std::size_t>(number_in(PQcmdTuples(exec(connection(), sql).get())));
}

std::size_t PostgresqlSession::change(const std::string& sql) {
  return static_cast<std::size_t>(number_in(PQcmdTuples(change_with(sql).get())));
}

std::optional<std::int64_t> PostgresqlSession::change_returning(const std::string& sql) {
  const auto result = change_with(sql);
  if (PQntuples(result.get()) == 0 || PQgetisnull(result.get(), 0, 0) != 0) return std::nullopt;
  return number_in(field(result, 0, 0));
}

/// Runs one statement in a transaction of its own, which may write. Returns its result.
PostgresqlResult PostgresqlSession::change_with(const std::string& sql) {
  PGconn* pg = connection();
  if (!refuses_writes_) return exec(pg, sql);
  auto results = run_pipeline(pg, [&](PostgresqlPipeline& pipeline) {
    pipeline.add(begin_.sql.c_str());
    pipeline.add(sql.c_str());
    pipeline.add("COMMIT");
  });
  try {
    require_begun(results);
    require(pg, results, 3);
  } catch (...) {
    if (PQtransactionStatus(pg) != PQTRANS_IDLE) try_exec(pg, "ROLLBACK");
    throw;
  }
  return std::move(results[1]);
}

std::vector<Row> PostgresqlSession::read(const std::string& sql, std::size_t columns) {
  return postgresql_query(sql_, sql, columns);
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
