// Claims on MariaDB and MySQL.

#include <mysqld_error.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "backend/mysql/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

constexpr auto existing_columns =
    "state, attempt_token, content_hash, result, "
    "TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), lease_expires_at) DIV 1000, "
    "COALESCE(lease_fence, 0), TIMESTAMPDIFF(MICROSECOND, consumed_at, UTC_TIMESTAMP(6)) DIV 1000";
constexpr std::size_t existing_column_count = 7;

std::optional<std::chrono::milliseconds> milliseconds_in(const std::optional<std::string>& field) {
  if (!field) return std::nullopt;
  return std::chrono::milliseconds(number_in(*field));
}

/// Reads the columns of `existing_columns`, which are the first columns of the row.
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

std::string hex_or_null(std::string_view bytes) { return bytes.empty() ? "NULL" : hex_literal(bytes); }

constexpr auto undecided_end = "UTC_TIMESTAMP(6) + INTERVAL 60 SECOND";
static_assert(undecided_time == std::chrono::seconds(60));

/// In this backend each claim is inserted as torn, so each undecided one has a lease.
std::string values_of(const ClaimRequest& row) {
  return fmt::format("({}, {}, {}, {}, 'torn', {}, UTC_TIMESTAMP(6), {})", hex_literal(row.consumer),
                     hex_literal(row.business_key), hex_or_null(row.message_id), hex_or_null(row.content_hash),
                     hex_literal(row.token->bytes()), row.undecided ? undecided_end : "NULL");
}

constexpr unsigned mysql_lock_nowait = 3572;  ///< MySQL's ER_LOCK_NOWAIT, which MariaDB's header does not have.

}  // namespace

// The INSERT has no IGNORE, because IGNORE would hide other errors, too.
std::string MysqlSession::claim_sql(const ClaimRequest& row) const {
  return fmt::format("INSERT INTO {} {} VALUES {}", table_, claim_columns, values_of(row));
}

/// Inserts a claim without waiting for another transaction that holds the key.
///
/// MySQL's shortest time-out is a second. So a locking read first finds out whether another transaction holds the key.
/// The time-out is needed only if two transactions insert the key at the same time.
unsigned MysqlSession::try_claim(const ClaimRequest& row) {
  MYSQL* db = connection();
  if (flavour_.set_statement) return try_exec(db, fmt::format("{}{}", no_lock_wait, claim_sql(row)));
  if (flavour_.share_without_wait.empty()) return try_exec(db, claim_sql(row));
  const std::string held = fmt::format("SELECT 1 FROM {} WHERE {} LIMIT 1 {}", table_,
                                       key_condition(row.consumer, row.business_key), flavour_.share_without_wait);
  if (const unsigned error = try_exec(db, held); error != 0) return error;
  exec(db, "SET @txinbox_lock_wait = @@innodb_lock_wait_timeout, innodb_lock_wait_timeout = 1");
  const unsigned claimed = try_exec(db, claim_sql(row));
  const std::string text = mysql_error(db);
  const unsigned restored =
      try_exec(db, "SET innodb_lock_wait_timeout = @txinbox_lock_wait, @txinbox_lock_wait = NULL");
  if (claimed != 0 && claimed != ER_DUP_ENTRY && claimed != ER_LOCK_WAIT_TIMEOUT) {
    throw_mysql_error(db, claimed, text);
  }
  if (restored != 0) throw_mysql_error(db);
  return claimed;
}

ClaimReply MysqlSession::open_and_claim(const ClaimRequest& row) {
  tracker_.begin_transaction();
  if (!flavour_.compound_statements) check_settings_of_caller();
  if (calls_procedures() && row.waits) {
    if (auto reply = call_begin_and_claim(row)) return std::move(*reply);
  }
  if (!in_one_statement()) return Session::open_and_claim(row);
  if (!pooled_) return open_and_claim_of_caller(row);
  MysqlStatement& opening = row.waits ? opening_ : opening_without_wait_;
  if (!opening.prepared()) opening.prepare(connection(), opening_sql(no_lock_wait));
  if (const unsigned error = opening.try_run(opening_values(row)); error != 0) {
    if (!row.waits && error == ER_LOCK_WAIT_TIMEOUT) return {ClaimStatus::locked};
    opening.throw_error();
  }
  return claim_reply(opening.take_reply());
}

/// If the reply has no row, the claim was inserted. If the key has a row, the statement returns that row and ends the
/// transaction.
ClaimReply MysqlSession::claim_reply(MysqlReply reply) {
  if (!reply.has_rows) return {ClaimStatus::inserted};
  if (reply.rows.empty()) return {ClaimStatus::vanished, {}, true};
  return {ClaimStatus::exists, existing_row(reply.rows.front()), true};
}

std::optional<ClaimedRow> MysqlSession::find_committed(const ClaimRequest& row) {
  if (!pooled_) return find_committed_of_caller(row);
  if (!reads_committed_) return std::nullopt;
  std::optional<MysqlRow> found;
  if (existing_.prepared()) {
    if (existing_.try_run(std::array{row.consumer, row.business_key}) != 0) existing_.throw_error();
    auto rows = existing_.take_reply().rows;
    if (!rows.empty()) found = std::move(rows.front());
  } else {
    found = query_row(connection(), existing_sql(key_condition(row.consumer, row.business_key)));
  }
  if (!found) return std::nullopt;
  return existing_row(*found);
}

/// At some isolation levels, a plain read of a caller's session sees rows that are not committed. So this read locks
/// the row. With autocommit off, it would begin a transaction. So it does not run if the settings have changed.
std::optional<ClaimedRow> MysqlSession::find_committed_of_caller(const ClaimRequest& row) {
  if (!row.waits || !may_know_settings()) return std::nullopt;
  open_sent_ = false;
  if (!flavour_.compound_statements) check_settings_of_caller();
  if (!autocommit_ || !keeps_prepared_) return std::nullopt;
  MYSQL* db = connection();
  keeps_prepared_ = existing_.prepared_on(db) || existing_.try_prepare(db, existing_sql_of_caller());
  if (!keeps_prepared_) return std::nullopt;
  const unsigned error = existing_.try_run(std::array{row.consumer, row.business_key});
  if (error == ER_UNKNOWN_STMT_HANDLER) {  // a proxy has reset the connection
    existing_.close();
    return std::nullopt;
  }
  if (error != 0) existing_.throw_error();
  auto found = existing_.take_reply().rows;
  if (found.empty() || found[0].size() == 1) return std::nullopt;
  return existing_row(found[0]);
}

/// On MariaDB, the statement returns only one column if the settings have changed.
std::string MysqlSession::existing_sql_of_caller() const {
  std::string read = fmt::format("{} {}", existing_sql(any_key), flavour_.lock_existing);
  if (flavour_.compound_statements) {
    read = compound(fmt::format("IF {} THEN SELECT 1; ELSE {}; END IF", changed_settings_, read));
  }
  return read;
}

std::string MysqlSession::existing_sql(const std::string& condition) const {
  return fmt::format("SELECT {} FROM {} WHERE {}", existing_columns, table_, condition);
}

ClaimReply MysqlSession::claim(const ClaimRequest& row) {
  MYSQL* db = connection();
  // If an earlier handler of the batch has stopped the clock, the claim would get that time.
  if (tracker_.has_changed("timestamp")) exec(db, "SET timestamp = DEFAULT");
  const unsigned error = row.waits ? try_exec(db, claim_sql(row)) : try_claim(row);
  if (!row.waits && (error == ER_LOCK_WAIT_TIMEOUT || error == mysql_lock_nowait)) return {ClaimStatus::locked};
  if (error == 0) return {ClaimStatus::inserted};
  if (error != ER_DUP_ENTRY) throw_mysql_error(db);

  // Use a locking read, because a plain read in a caller's REPEATABLE READ snapshot may not see the row. Use a shared
  // lock if the server has one, because with FOR UPDATE the redeliveries of one key deadlock each other.
  auto found = query_row(
      db, fmt::format("{} {}", existing_sql(key_condition(row.consumer, row.business_key)), flavour_.lock_existing));
  if (!found) return {ClaimStatus::vanished};
  return {ClaimStatus::exists, existing_row(*found)};
}

// With autocommit on, a Galera node repeats a statement that another node's transaction has aborted
// (wsrep_retry_autocommit). If the node had already sent rows, it sends the new rows after them, and the client cannot
// tell them apart. So we would treat claims of the aborted run as ours. With autocommit off, the node reports a
// deadlock.
std::vector<ClaimReply> MysqlSession::begin_and_claim_all(std::span<const ClaimRequest> rows) {
  // Even with the longest texts, a statement with this many rows is far below any max_allowed_packet.
  constexpr std::size_t at_once = 500;
  find_cluster();
  if (opens_with_rows()) {
    tracker_.begin_transaction();
  } else {
    begin();
  }
  std::vector<ClaimReply> replies;
  replies.reserve(rows.size());
  for (std::size_t done = 0; done < rows.size(); done += at_once) {
    const auto part = rows.subspan(done, std::min(at_once, rows.size() - done));
    claim_some(opens_with_rows() && done == 0, part, replies);
  }
  return replies;
}

constexpr std::string_view keep_duplicates = " ON DUPLICATE KEY UPDATE attempt_token = attempt_token";

/// Inserts claims. ON DUPLICATE KEY UPDATE changes nothing, so a duplicate causes no error. The token of a row shows
/// whether the row is our claim.
void MysqlSession::claim_some(bool open, std::span<const ClaimRequest> rows, std::vector<ClaimReply>& replies) {
  std::vector<MysqlRow> found;
  if (MysqlStatement* prepared = open && pooled_ ? prepared_opening(rows.size()) : nullptr) {
    found = run_prepared_claims(*prepared, rows);
  } else {
    std::string insert = fmt::format("INSERT INTO {} {} VALUES ", table_, claim_columns);
    for (const ClaimRequest& row : rows) insert += (&row == rows.data() ? "" : ", ") + values_of(row);
    found = run_claims(open, insert.append(keep_duplicates), rows);
  }
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

/// Returns a compound statement that begins the transaction and runs `claims`.
std::string MysqlSession::opening_all_sql(const std::string& claims) const {
  return compound(fmt::format("SET autocommit = 0; SAVEPOINT {}; {}", guard_, claims));
}

/// Returns the statement that begins a batch in a pool. Returns null if it is not prepared.
MysqlStatement* MysqlSession::prepared_opening(std::size_t rows) {
  return opening_all_.prepared_for(connection(), rows, [&] {
    std::string insert = fmt::format("INSERT INTO {} {} VALUES ", table_, claim_columns);
    for (std::size_t i = 0; i < rows; ++i) {
      insert += fmt::format("{}(?, ?, ?, ?, 'torn', ?, UTC_TIMESTAMP(6), IF(?, {}, NULL))", i == 0 ? "" : ", ",
                            undecided_end);
    }
    return opening_all_sql(fmt::format("{}{} RETURNING {}, business_key", insert, keep_duplicates, existing_columns));
  });
}

std::vector<MysqlRow> MysqlSession::run_prepared_claims(MysqlStatement& prepared, std::span<const ClaimRequest> rows) {
  std::vector<std::string_view> values;
  values.reserve(6 * rows.size());
  for (const ClaimRequest& row : rows) {
    values.insert(values.end(), {row.consumer, row.business_key, or_null(row.message_id), or_null(row.content_hash),
                                 row.token->bytes(), row.undecided ? "1" : "0"});
  }
  if (prepared.try_run(values) != 0) prepared.throw_error();
  return prepared.take_reply().rows;
}

/// Returns the rows of these keys after the insert, in any order. Each has the columns of an existing row, and then the
/// key.
std::vector<MysqlRow> MysqlSession::run_claims(bool open, const std::string& insert,
                                               std::span<const ClaimRequest> rows) {
  MYSQL* db = connection();
  if (flavour_.insert_returning) {
    const std::string returning = fmt::format("{} RETURNING {}, business_key", insert, existing_columns);
    if (open && !pooled_) {
      MysqlReply reply;
      if (begin_of_caller(returning, reply)) return std::move(reply.rows);
      begin();
      open = false;
    }
    return query_rows(db, open ? opening_all_sql(returning) : returning);
  }
  exec(db, insert);
  std::string select = fmt::format("SELECT {}, business_key FROM {} WHERE consumer = {} AND business_key IN (",
                                   existing_columns, table_, hex_literal(rows[0].consumer));
  for (const ClaimRequest& row : rows) select += (&row == rows.data() ? "" : ", ") + hex_literal(row.business_key);
  // The LIMIT is necessary, because otherwise sql_select_limit applies.
  return query_rows(db, fmt::format("{}) LIMIT {} {}", select, rows.size(), flavour_.lock_existing));
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
