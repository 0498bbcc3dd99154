// The guarded transaction on MariaDB and MySQL.

#include <mysqld_error.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "backend/mysql/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

constexpr auto claim_columns = "(consumer, business_key, message_id, content_hash, state, attempt_token, consumed_at)";

constexpr auto existing_columns =
    "state, attempt_token, content_hash, result, "
    "TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), lease_expires_at) DIV 1000, "
    "COALESCE(lease_fence, 0), TIMESTAMPDIFF(MICROSECOND, consumed_at, UTC_TIMESTAMP(6)) DIV 1000";
constexpr std::size_t existing_column_count = 7;

std::optional<std::chrono::milliseconds> milliseconds_in(const std::optional<std::string>& field) {
  if (!field) return std::nullopt;
  return std::chrono::milliseconds(number_in(*field));
}

/// Reads those columns, which stand first in the row.
ClaimedRow existing_row(MysqlRow& row) {
  ClaimedRow existing;
  existing.set_state(row[0].value_or(""));
  existing.token = row[1].value_or("");
  existing.content_hash = row[2].value_or("");
  existing.result = std::move(row[3]);
  existing.lease_remaining = milliseconds_in(row[4]);
  existing.lease_fence = number_in(row[5].value_or(""));
  existing.age = std::chrono::milliseconds(number_in(row[6].value_or("")));
  return existing;
}

std::string compound(const std::string& statements) { return "BEGIN NOT ATOMIC " + statements + "; END"; }

std::string hex_or_null(std::string_view bytes) { return bytes.empty() ? "NULL" : hex_literal(bytes); }

std::string values_of(const ClaimRequest& row) {
  return fmt::format("({}, {}, {}, {}, 'torn', {}, UTC_TIMESTAMP(6))", hex_literal(row.consumer),
                     hex_literal(row.business_key), hex_or_null(row.message_id), hex_or_null(row.content_hash),
                     hex_literal(row.token->bytes()));
}

std::string_view or_null(std::string_view bytes) { return bytes.empty() ? std::string_view() : bytes; }

std::string key_condition(std::string_view consumer, std::string_view business_key) {
  return fmt::format("consumer = {} AND business_key = {}", hex_literal(consumer), hex_literal(business_key));
}

/// A further statement of a compound one, which must change so many rows: else it fails as a missing savepoint does.
std::string changing(std::size_t rows, const std::string& statement) {
  return fmt::format("; {}; IF ROW_COUNT() <> {} THEN SIGNAL SQLSTATE '42000' SET MYSQL_ERRNO = {}; END IF", statement,
                     rows, ER_SP_DOES_NOT_EXIST);
}

}  // namespace

bool MysqlSession::in_transaction() {
  MYSQL* db = connection();
  const auto flag = [db] { return (db->server_status & SERVER_STATUS_IN_TRANS) != 0; };
  if (!flag()) return false;
  exec(db, "DO 0");  // after a deadlock the flag is stale until a statement has succeeded
  return flag();
}

bool MysqlSession::guard_likely_intact() noexcept {
  const MYSQL* db = mysql_native(sql_);
  return db != nullptr && (db->server_status & SERVER_STATUS_IN_TRANS) != 0;
}

void MysqlSession::begin() {
  MYSQL* db = connection();
  if (in_one_statement()) {
    exec(db, compound("SET autocommit = 0; SAVEPOINT " + guard_));
    return;
  }
  if (pooled_ || autocommit_) exec(db, "SET autocommit = 0");
  exec(db, "SAVEPOINT " + guard_);
}

// Plain, not IGNORE: that would swallow other errors too.
std::string MysqlSession::claim_sql(const ClaimRequest& row) const {
  return fmt::format("INSERT INTO {} {} VALUES {}", table_, claim_columns, values_of(row));
}

void MysqlSession::prepare_statements() {
  MYSQL* db = connection();
  const std::string existing = existing_sql("consumer = ? AND business_key = ?");
  existing_.prepare(db, existing);
  // Of a duplicate it returns the row, and leaves no transaction open.
  opening_.prepare(db, compound(fmt::format("DECLARE EXIT HANDLER FOR {} BEGIN {}; ROLLBACK; SET autocommit = 1; END; "
                                            "SET autocommit = 0; SAVEPOINT {}; "
                                            "INSERT INTO {} {} VALUES (?, ?, ?, ?, 'torn', ?, UTC_TIMESTAMP(6))",
                                            ER_DUP_ENTRY, existing, guard_, table_, claim_columns)));
  closing_.prepare(db, closing_sql(changing(1, fmt::format("UPDATE {} SET state = 'consumed', result = ? WHERE "
                                                           "consumer = ? AND business_key = ? AND attempt_token = ?",
                                                           table_))));
}

ClaimReply MysqlSession::open_and_claim(const ClaimRequest& row) {
  if (!in_one_statement()) return Session::open_and_claim(row);
  const std::array values = {row.consumer,      row.business_key,        row.consumer,
                             row.business_key,  or_null(row.message_id), or_null(row.content_hash),
                             row.token->bytes()};
  if (opening_.try_run(values) != 0) opening_.throw_error();
  auto reply = opening_.take_reply();
  if (!reply.has_rows) return {ClaimStatus::inserted};
  if (!reply.row) return {ClaimStatus::vanished, {}, true};
  return {ClaimStatus::exists, existing_row(*reply.row), true};
}

// With a caller's autocommit off, or under its isolation level, a read opens a transaction or a snapshot.
std::optional<ClaimedRow> MysqlSession::find_committed(const ClaimRequest& row) {
  if (!pooled_ || !reads_committed_) return std::nullopt;
  std::optional<MysqlRow> found;
  if (existing_.prepared()) {
    if (existing_.try_run(std::array{row.consumer, row.business_key}) != 0) existing_.throw_error();
    found = existing_.take_reply().row;
  } else {
    found = query_row(connection(), existing_sql(key_condition(row.consumer, row.business_key)));
  }
  if (!found) return std::nullopt;
  return existing_row(*found);
}

std::string MysqlSession::existing_sql(const std::string& condition) const {
  return fmt::format("SELECT {} FROM {} WHERE {}", existing_columns, table_, condition);
}

ClaimReply MysqlSession::claim(const ClaimRequest& row) {
  MYSQL* db = connection();
  // By the handler of a message before it in the batch: the claim's time would be that one.
  if (tracker_.has_changed("timestamp")) exec(db, "SET timestamp = DEFAULT");
  const unsigned error = try_exec(db, claim_sql(row));
  if (error == 0) return {ClaimStatus::inserted};
  if (error != ER_DUP_ENTRY) throw_mysql_error(db);

  // A share lock: in a caller's REPEATABLE READ snapshot a plain read may not see the row, and FOR
  // UPDATE deadlocks redeliveries of one key with each other.
  auto found = query_row(db, existing_sql(key_condition(row.consumer, row.business_key)) + " LOCK IN SHARE MODE");
  if (!found) return {ClaimStatus::vanished};
  return {ClaimStatus::exists, existing_row(*found)};
}

// A Galera node runs a statement that began with autocommit on again when another node's transaction has
// aborted it (wsrep_retry_autocommit). If it has sent rows by then, it sends the new ones behind them, with
// nothing that tells the client: the claims of the aborted run would be taken for made. With autocommit off
// it reports the deadlock.
std::vector<ClaimReply> MysqlSession::begin_and_claim_all(std::span<const ClaimRequest> rows) {
  // Far below any max_allowed_packet, with every text of the longest.
  constexpr std::size_t at_once = 500;
  if (!opens_with_rows()) begin();
  std::vector<ClaimReply> replies;
  replies.reserve(rows.size());
  for (std::size_t done = 0; done < rows.size(); done += at_once) {
    const auto part = rows.subspan(done, std::min(at_once, rows.size() - done));
    claim_some(opens_with_rows() && done == 0, part, replies);
  }
  return replies;
}

/// Inserts claims; an update that changes nothing keeps a duplicate from being an error, and tells it by
/// its token.
void MysqlSession::claim_some(bool open, std::span<const ClaimRequest> rows, std::vector<ClaimReply>& replies) {
  std::string insert = fmt::format("INSERT INTO {} {} VALUES ", table_, claim_columns);
  for (const ClaimRequest& row : rows) insert += (&row == rows.data() ? "" : ", ") + values_of(row);
  insert += " ON DUPLICATE KEY UPDATE attempt_token = attempt_token";

  std::vector<MysqlRow> found = run_claims(open, insert, rows);
  std::unordered_map<std::string_view, MysqlRow*> row_of;
  for (MysqlRow& each : found) row_of.emplace(*each[existing_column_count], &each);
  for (const ClaimRequest& row : rows) {
    const auto at = row_of.find(row.business_key);
    if (at == row_of.end()) {
      replies.push_back({ClaimStatus::vanished});
    } else if (at->second->at(1) == row.token->bytes()) {
      replies.push_back({ClaimStatus::inserted});
    } else {
      replies.push_back({ClaimStatus::exists, existing_row(*at->second)});
    }
  }
}

/// Returns what is there afterwards, in no order: the columns of an existing row and the key.
std::vector<MysqlRow> MysqlSession::run_claims(bool open, const std::string& insert,
                                               std::span<const ClaimRequest> rows) {
  MYSQL* db = connection();
  if (is_mariadb_) {
    const std::string returning = fmt::format("{} RETURNING {}, business_key", insert, existing_columns);
    return query_rows(
        db, open ? compound(fmt::format("SET autocommit = 0; SAVEPOINT {}; {}", guard_, returning)) : returning);
  }
  exec(db, insert);
  std::string select = fmt::format("SELECT {}, business_key FROM {} WHERE consumer = {} AND business_key IN (",
                                   existing_columns, table_, hex_literal(rows[0].consumer));
  for (const ClaimRequest& row : rows) select += (&row == rows.data() ? "" : ", ") + hex_literal(row.business_key);
  // A limit of its own, or sql_select_limit would count.
  return query_rows(db, fmt::format("{}) LIMIT {} LOCK IN SHARE MODE", select, rows.size()));
}

/// One statement for all claims of a consumer that have no result, and one for each that has. By the primary
/// key, whatever the optimizer thinks of a small table: a scan would wait for the rows of others.
std::vector<MysqlSession::Confirmation> MysqlSession::confirmations(std::span<const ClosingClaim> claims) const {
  const auto update = [&](const ClosingClaim& claim, const std::string& keys) {
    return fmt::format(
        "UPDATE {} FORCE INDEX (PRIMARY) SET state = 'consumed', result = {} WHERE consumer = {} AND business_key IN "
        "({}) AND attempt_token = {}",
        table_, claim.result ? hex_literal(*claim.result) : "NULL", hex_literal(claim.consumer), keys,
        hex_literal(claim.token->bytes()));
  };
  std::vector<Confirmation> all;
  for (auto claim = claims.begin(); claim != claims.end();) {
    const ClosingClaim& first = *claim;
    std::string keys;
    std::size_t rows = 0;
    for (; claim != claims.end() && claim->consumer == first.consumer; ++claim) {
      if (claim->result) {
        all.push_back({update(*claim, hex_literal(claim->business_key)), 1});
      } else if (!claim->confirmed) {
        keys += (rows++ == 0 ? "" : ", ") + hex_literal(claim->business_key);
      }
    }
    if (rows > 0) all.push_back({update({first.consumer, {}, first.token}, keys), rows});
  }
  return all;
}

std::string MysqlSession::confirmation_sql(std::span<const ClosingClaim> claims) const {
  std::string sql;
  for (const Confirmation& each : confirmations(claims)) sql += changing(each.rows, each.sql);
  return sql;
}

bool MysqlSession::confirm(std::span<const ClosingClaim> claims) {
  MYSQL* db = connection();
  for (const Confirmation& each : confirmations(claims)) {
    exec(db, each.sql);
    if (mysql_affected_rows(db) != each.rows) return false;
  }
  return true;
}

std::string MysqlSession::closing_sql(const std::string& confirmation) const {
  return compound(fmt::format("RELEASE SAVEPOINT {}{}; COMMIT; {}", guard_, confirmation, end_guard_));
}

CommitStatus MysqlSession::commit(std::span<const ClosingClaim> claims) {
  MYSQL* db = mysql_native(sql_);
  if (db == nullptr || !is_configured_connection(db)) return CommitStatus::not_ours;
  commit_sent_ = false;
  if (in_one_statement()) return commit_in_one_statement(db, claims);

  if (!runs_on_savepoint("RELEASE SAVEPOINT " + guard_)) return CommitStatus::not_ours;
  if (!confirm(claims)) return CommitStatus::not_ours;
  commit_sent_ = true;
  exec(db, "COMMIT");
  if (pooled_) {
    if (!restore(db)) thread_id_ = 0;
  } else if (autocommit_) {
    try_exec(db, "SET autocommit = 1");  // committed already: if this fails, the connection is gone
  }
  return CommitStatus::committed;
}

CommitStatus MysqlSession::commit_in_one_statement(MYSQL* db, std::span<const ClosingClaim> claims) {
  if (drain(db) != 0) throw_mysql_error(db);
  commit_sent_ = true;
  const bool prepared = claims.size() == 1 && !claims[0].confirmed;
  const unsigned error = prepared ? run_closing(claims[0]) : try_exec(db, closing_sql(confirmation_sql(claims)));
  if (error == ER_SP_DOES_NOT_EXIST) return CommitStatus::not_ours;
  if (error != 0 && prepared) closing_.throw_error();
  if (error != 0) throw_mysql_error(db);
  if (!restore_after_compound(db)) thread_id_ = 0;
  return CommitStatus::committed;
}

/// Of the usual transaction, which has one claim.
unsigned MysqlSession::run_closing(const ClosingClaim& claim) noexcept {
  return closing_.try_run(
      std::array{claim.result.value_or(std::string_view()), claim.consumer, claim.business_key, claim.token->bytes()});
}

RollbackStatus MysqlSession::roll_back() noexcept {
  MYSQL* db = mysql_native(sql_);
  if (db == nullptr || !is_configured_connection(db)) return RollbackStatus::failed;
  drain(db);
  const std::string to_guard = "ROLLBACK TO SAVEPOINT " + guard_;
  if (in_one_statement()) {
    if (try_exec(db, compound(to_guard + "; ROLLBACK; " + end_guard_)) == 0) {
      return restore_after_compound(db) ? RollbackStatus::ours : RollbackStatus::failed;
    }
    return reset() ? RollbackStatus::not_ours : RollbackStatus::failed;
  }
  const bool ours = try_exec(db, to_guard) == 0;
  if (try_exec(db, "ROLLBACK") != 0) return RollbackStatus::failed;
  if (!ours && try_exec(db, "UNLOCK TABLES") != 0) return RollbackStatus::failed;  // LOCK TABLES has committed
  const bool restored = pooled_ ? restore(db) : !autocommit_ || try_exec(db, "SET autocommit = 1") == 0;
  if (!restored) return RollbackStatus::failed;
  return ours ? RollbackStatus::ours : RollbackStatus::not_ours;
}

/// Runs what needs one of our savepoints. False: it is gone.
bool MysqlSession::runs_on_savepoint(const std::string& sql) {
  MYSQL* db = mysql_native(sql_);
  if (db == nullptr || !is_configured_connection(db)) return false;
  if (drain(db) != 0) throw_mysql_error(db);
  const unsigned error = try_exec(db, sql);
  if (error == ER_SP_DOES_NOT_EXIST) return false;
  if (error != 0) throw_mysql_error(db);
  return true;
}

bool MysqlSession::verify_guard() {
  const std::string release = "RELEASE SAVEPOINT " + guard_;
  const std::string set_again = "SAVEPOINT " + guard_;
  if (in_one_statement()) return runs_on_savepoint(compound(release + "; " + set_again));
  return runs_on_savepoint(release) && runs_on_savepoint(set_again);
}

void MysqlSession::savepoint() { exec(connection(), "SAVEPOINT " + step_); }

bool MysqlSession::release_savepoint(const ClosingClaim* claim) {
  const std::string release = "RELEASE SAVEPOINT " + step_;
  if (claim == nullptr) return runs_on_savepoint(release);
  if (in_one_statement()) return runs_on_savepoint(compound(release + confirmation_sql({claim, 1})));
  return runs_on_savepoint(release) && confirm({claim, 1});
}

bool MysqlSession::rollback_to_savepoint() noexcept {
  MYSQL* db = mysql_native(sql_);
  if (db == nullptr || !is_configured_connection(db)) return false;
  drain(db);
  return try_exec(db, "ROLLBACK TO SAVEPOINT " + step_) == 0 && try_exec(db, "RELEASE SAVEPOINT " + step_) == 0;
}

/// InnoDB shows a commit, and lets go of its locks, before it writes its log. A message that was
/// acknowledged on the word of such a row would be lost with it in a crash. Each commit that has changed
/// something waits for the log up to itself, and so for all that it has seen.
bool MysqlSession::wait_until_durable(std::string_view consumer, std::string_view business_key) {
  if (!shows_unsafe_commits_) return true;
  MYSQL* db = connection();
  exec(db, fmt::format("UPDATE {} SET attempts = 1 - COALESCE(attempts, 0) WHERE {} AND state = 'consumed'", table_,
                       key_condition(consumer, business_key)));
  const bool changed = mysql_affected_rows(db) == 1;
  if (!pooled_ && !autocommit_) exec(db, "COMMIT");
  return changed;
}

std::size_t MysqlSession::execute(const std::string& sql) {
  MYSQL* db = connection();
  exec(db, sql);
  return static_cast<std::size_t>(mysql_affected_rows(db));
}

std::size_t MysqlSession::change(const std::string& sql) { return change_with(sql).rows; }

std::optional<std::int64_t> MysqlSession::change_returning(const std::string& sql) {
  const Changed changed = change_with(sql);
  if (changed.rows == 0) return std::nullopt;
  return static_cast<std::int64_t>(changed.insert_id);
}

MysqlSession::Changed MysqlSession::change_with(const std::string& sql) {
  MYSQL* db = connection();
  const bool autocommit = pooled_ || autocommit_;
  try {
    const Changed changed{.rows = execute(sql), .insert_id = mysql_insert_id(db)};
    if (!autocommit) exec(db, "COMMIT");
    return changed;
  } catch (...) {
    if (!autocommit) try_exec(db, "ROLLBACK");
    throw;
  }
}

std::vector<Row> MysqlSession::read(const std::string& sql, std::size_t columns) {
  auto rows = query(sql_, sql, columns);
  if (!pooled_ && !autocommit_) exec(connection(), "COMMIT");
  return rows;
}

void MysqlSession::catch_up() {
  if (is_galera_) exec(connection(), "SET STATEMENT wsrep_sync_wait = 1 FOR SELECT 1");
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
