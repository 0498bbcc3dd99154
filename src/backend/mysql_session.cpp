#include "backend/mysql_session.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <mysqld_error.h>

#include <array>

#include <fmt/format.h>

#include "backend/mysql_catalog.hpp"

namespace txinbox::inline TXINBOX_ABI::backend {
namespace {

/// What a handler can leave behind on a session and the next one would meet, besides the isolation
/// level, whose name differs by server, and sql_mode, which a compound statement cannot set.
constexpr std::array common_settings = {"character_set_client",
                                        "character_set_connection",
                                        "collation_connection",
                                        "character_set_results",
                                        "time_zone",
                                        "foreign_key_checks",
                                        "unique_checks",
                                        "innodb_lock_wait_timeout",
                                        "lock_wait_timeout"};

bool is_mariadb(MYSQL* connection) {
  return std::string_view(mysql_get_server_info(connection)).find("MariaDB") != std::string_view::npos;
}

/// The client library switches keepalive on, but leaves the system's times: two hours, usually.
void keep_alive(int socket) {
  const auto set = [socket](int level, int option, int value) {
    setsockopt(socket, level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 60);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(IPPROTO_TCP, TCP_KEEPCNT, 6);
}

std::string compound(const std::string& statements) { return "BEGIN NOT ATOMIC " + statements + "; END"; }

}  // namespace

MysqlSession::MysqlSession(soci::session& sql, Ownership ownership)
    : sql_(sql), pooled_(ownership == Ownership::pool), is_mariadb_(is_mariadb(connection())) {}

MYSQL* MysqlSession::connection() {
  MYSQL* connection = mysql_native(sql_);
  if (connection == nullptr) throw Error(ErrorCode::unsupported_database, "the SOCI session is not connected");
  return connection;
}

void MysqlSession::configure(const PoolOptions& options) {
  using std::chrono::ceil;
  using std::chrono::seconds;
  MYSQL* db = connection();
  thread_id_ = mysql_thread_id(db);
  keep_alive(static_cast<int>(mysql_get_socket(db)));
  const auto lock = ceil<seconds>(options.lock_timeout).count();
  const auto idle = ceil<seconds>(options.idle_transaction_timeout).count();
  const auto statement = options.statement_timeout.count();
  // Not SET NAMES, of which the client would not know: it quotes the values that SOCI binds.
  if (mysql_set_character_set(db, "utf8mb4") != 0) throw_mysql_error(db);
  exec(db, fmt::format("SET autocommit = 1, {} = 'READ-COMMITTED', "
                       "sql_mode = CONCAT_WS(',', NULLIF(@@sql_mode, ''), 'STRICT_ALL_TABLES'), "
                       "innodb_lock_wait_timeout = {}, lock_wait_timeout = {}",
                       is_mariadb_ ? "tx_isolation" : "transaction_isolation", lock, lock));
  exec(db, is_mariadb_ ? fmt::format("SET max_statement_time = {}.{:03}, idle_transaction_timeout = {}",
                                     statement / 1000, statement % 1000, idle)
                       : fmt::format("SET max_execution_time = {}, wait_timeout = {}", statement, idle));
  // The default database is then known without asking.
  exec(db, "SET session_track_schema = 1");
}

void MysqlSession::remember_settings() {
  MYSQL* db = connection();
  const char* isolation = is_mariadb_ ? "tx_isolation" : "transaction_isolation";
  std::vector<const char*> settings(common_settings.begin(), common_settings.end());
  for (const char* name : is_mariadb_ ? std::array{"tx_read_only", "max_statement_time", "idle_transaction_timeout"}
                                      : std::array{"transaction_read_only", "max_execution_time", "wait_timeout"}) {
    settings.push_back(name);
  }
  std::string query = fmt::format("SELECT @@{}", isolation);
  for (const char* name : settings) query += fmt::format(", @@{}", name);
  query += ", @@sql_mode, DATABASE(), CURRENT_ROLE(), (SELECT count(*) FROM information_schema.applicable_roles)";
  const MysqlRow row = query_row(db, query).value();

  restore_in_compound_ = fmt::format("SET autocommit = 1, {} = {}", isolation, quoted(row[0].value()));
  std::size_t column = 1;
  for (const char* name : settings) {
    const std::string value = row[column].value_or("NULL");  // character_set_results may be
    const bool bare = !row[column++] || (!value.empty() && value.find_first_not_of("0123456789.") == std::string::npos);
    restore_in_compound_ += fmt::format(", {} = {}", name, bare ? value : quoted(value));
  }
  const std::string sql_mode = quoted(row[column++].value());
  restore_ = restore_in_compound_ + ", sql_mode = " + sql_mode;
  // A compound statement ends with the sql_mode that it began with, so it can only tell that the mode
  // was changed: by a warning, which is counted in its reply.
  restore_in_compound_ += fmt::format("; IF @@sql_mode <> {} THEN SIGNAL SQLSTATE '01000'; END IF", sql_mode);
  database_ = row[column++].value_or("");
  const std::string role = row[column++].value_or("NONE");
  const bool has_roles = row[column].value() != "0";
  // MariaDB gives the bare name, MySQL a list that is quoted already.
  restore_role_ = !has_roles ? "" : "SET ROLE " + (role == "NONE" || !is_mariadb_ ? role : quoted(role));
}

void MysqlSession::use_schema(const std::string& schema) {
  table_ = quoted_identifier(schema) + ".txinbox_consumed_message";
}

std::vector<Problem> MysqlSession::unsafe_settings() {
  MYSQL* db = connection();
  std::vector<Problem> problems;
  const auto refuse = [&](std::string subject, std::string found, std::string mend) {
    problems.push_back(
        {ErrorCode::unsafe_connection, {Severity::error, std::move(subject), std::move(found), std::move(mend)}});
  };
  const MysqlRow row = query_row(db, "SELECT @@autocommit, @@sql_mode").value();
  autocommit_ = row[0] == "1";
  if (!is_strict(row[1].value_or(""))) {
    refuse("sql_mode", "it is not strict: what does not fit is cut, and two keys can become one",
           "SET SESSION sql_mode = CONCAT_WS(',', NULLIF(@@sql_mode, ''), 'STRICT_ALL_TABLES'); open_pool does so");
  }
  char reconnect = 0;
  if (mysql_get_option(db, MYSQL_OPT_RECONNECT, &reconnect) == 0 && reconnect != 0) {
    refuse("reconnect", "after a silent reconnect the rest of a transaction would run by itself",
           "remove reconnect=1 from the connection string");
  }
  return problems;
}

bool MysqlSession::intact() noexcept {
  MYSQL* db = mysql_native(sql_);
  if (db == nullptr) return false;
  if (!pooled_) return true;
  if (thread_id_ == 0 || mysql_thread_id(db) != thread_id_) return false;
  // The server speaks unasked only to say farewell.
  pollfd readable{static_cast<int>(mysql_get_socket(db)), POLLIN, 0};
  return readable.fd >= 0 && poll(&readable, 1, 0) == 0;
}

/// What one SET cannot restore; both are rarely needed.
bool MysqlSession::restore_rest(MYSQL* db) noexcept {
  if (!restore_role_.empty() && try_exec(db, restore_role_) != 0) return false;
  if (database_.empty() || (db->db != nullptr && database_ == db->db)) return true;
  return mysql_select_db(db, database_.c_str()) == 0;
}

bool MysqlSession::restore_after_compound(MYSQL* db) noexcept {
  return mysql_warning_count(db) == 0 ? restore_rest(db) : restore(db);
}

bool MysqlSession::restore(MYSQL* db) noexcept { return try_exec(db, restore_) == 0 && restore_rest(db); }

bool MysqlSession::clean() noexcept {
  if (!intact()) return false;
  MYSQL* db = mysql_native(sql_);
  // In this order: UNLOCK TABLES would commit what is open.
  return try_exec(db, "ROLLBACK") == 0 && try_exec(db, "UNLOCK TABLES") == 0 && restore(db);
}

bool MysqlSession::in_transaction() {
  MYSQL* db = connection();
  const auto flag = [db] { return (db->server_status & SERVER_STATUS_IN_TRANS) != 0; };
  if (!flag()) return false;
  exec(db, "DO 0");  // after a deadlock the flag is stale until a statement has succeeded
  return flag();
}

void MysqlSession::begin(const Token& guard) {
  MYSQL* db = connection();
  if (in_one_statement()) {
    exec(db, compound("SET autocommit = 0; SAVEPOINT " + guard_name(guard)));
    return;
  }
  if (pooled_ || autocommit_) exec(db, "SET autocommit = 0");
  exec(db, "SAVEPOINT " + guard_name(guard));
}

std::string MysqlSession::insert_sql(const ClaimRow& row) const {
  // Plain, not IGNORE: that would swallow other errors too.
  return fmt::format(
      "INSERT INTO {} (consumer, business_key, message_id, state, attempt_token, consumed_at) "
      "VALUES ({}, {}, {}, 'consumed', x'{}', UTC_TIMESTAMP(6))",
      table_, hex_literal(row.consumer), hex_literal(row.business_key),
      row.message_id.empty() ? "NULL" : hex_literal(row.message_id), row.token->hex());
}

ClaimReply MysqlSession::claim(const ClaimRow& row) { return reply_to(try_exec(connection(), insert_sql(row)), row); }

ClaimReply MysqlSession::begin_and_claim(const Token& guard, const ClaimRow& row) {
  if (!in_one_statement()) return Session::begin_and_claim(guard, row);
  const std::string script = compound("SET autocommit = 0; SAVEPOINT " + guard_name(guard) + "; " + insert_sql(row));
  return reply_to(try_exec(connection(), script), row);
}

ClaimReply MysqlSession::reply_to(unsigned error, const ClaimRow& row) {
  MYSQL* db = connection();
  if (error == 0) return {ClaimStatus::inserted};
  if (error != ER_DUP_ENTRY) throw_mysql_error(db);

  // A share lock: in a caller's REPEATABLE READ snapshot a plain read may not see the row, and FOR
  // UPDATE deadlocks redeliveries of one key with each other.
  const auto found = query_row(
      db,
      fmt::format("SELECT state, LOWER(HEX(attempt_token)), result, "
                  "GREATEST(0, COALESCE(TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), lease_expires_at) DIV 1000, 0)) "
                  "FROM {} WHERE consumer = {} AND business_key = {} LOCK IN SHARE MODE",
                  table_, hex_literal(row.consumer), hex_literal(row.business_key)));
  if (!found) return {ClaimStatus::vanished};
  return {ClaimStatus::exists,
          {.state = (*found)[0].value_or(""),
           .token_hex = (*found)[1].value_or(""),
           .result = (*found)[2],
           .lease_remaining = std::chrono::milliseconds(std::stoll((*found)[3].value_or("0")))}};
}

std::string MysqlSession::store_sql(const StoredResult& each) const {
  return fmt::format("UPDATE {} SET result = {} WHERE consumer = {} AND business_key = {}", table_,
                     hex_literal(each.result), hex_literal(each.consumer), hex_literal(each.business_key));
}

CommitStatus MysqlSession::commit(const Token& guard, const std::vector<StoredResult>& results) {
  MYSQL* db = mysql_native(sql_);
  if (db == nullptr) return CommitStatus::not_ours;
  commit_sent_ = false;
  if (drain(db) != 0) throw_mysql_error(db);
  const std::string release = "RELEASE SAVEPOINT " + guard_name(guard);
  if (in_one_statement()) {
    std::string script = release;
    for (const StoredResult& each : results) script += "; " + store_sql(each);
    script += "; COMMIT; " + restore_in_compound_;
    commit_sent_ = true;
    const unsigned error = try_exec(db, compound(script));
    if (error == ER_SP_DOES_NOT_EXIST) return CommitStatus::not_ours;
    if (error != 0) throw_mysql_error(db);
    if (!restore_after_compound(db)) thread_id_ = 0;
    return CommitStatus::committed;
  }
  const unsigned error = try_exec(db, release);
  if (error == ER_SP_DOES_NOT_EXIST) return CommitStatus::not_ours;
  if (error != 0) throw_mysql_error(db);
  for (const StoredResult& each : results) exec(db, store_sql(each));
  commit_sent_ = true;
  exec(db, "COMMIT");
  if (pooled_) {
    if (!restore(db)) thread_id_ = 0;
  } else if (autocommit_) {
    try_exec(db, "SET autocommit = 1");  // committed already: if this fails, the connection is gone
  }
  return CommitStatus::committed;
}

RollbackStatus MysqlSession::roll_back(const Token& guard) noexcept {
  MYSQL* db = mysql_native(sql_);
  if (db == nullptr || (pooled_ && mysql_thread_id(db) != thread_id_)) return RollbackStatus::failed;
  drain(db);
  const std::string to_guard = "ROLLBACK TO SAVEPOINT " + guard_name(guard);
  if (in_one_statement()) {
    if (try_exec(db, compound(to_guard + "; ROLLBACK; " + restore_in_compound_)) == 0) {
      return restore_after_compound(db) ? RollbackStatus::ours : RollbackStatus::failed;
    }
    return clean() ? RollbackStatus::not_ours : RollbackStatus::failed;
  }
  const bool ours = try_exec(db, to_guard) == 0;
  if (try_exec(db, "ROLLBACK") != 0) return RollbackStatus::failed;
  const bool restored = pooled_ ? restore(db) : !autocommit_ || try_exec(db, "SET autocommit = 1") == 0;
  if (!restored) return RollbackStatus::failed;
  return ours ? RollbackStatus::ours : RollbackStatus::not_ours;
}

bool MysqlSession::mark_torn(const ClaimRow& row) {
  MYSQL* db = connection();
  exec(db, "START TRANSACTION");
  try {
    exec(db, fmt::format("UPDATE {} SET state = 'torn' WHERE consumer = {} AND business_key = {} "
                         "AND attempt_token = x'{}' AND state = 'consumed'",
                         table_, hex_literal(row.consumer), hex_literal(row.business_key), row.token->hex()));
    const bool marked = mysql_affected_rows(db) == 1;
    exec(db, "COMMIT");
    return marked;
  } catch (...) {
    try_exec(db, "ROLLBACK");
    throw;
  }
}

}  // namespace txinbox::inline TXINBOX_ABI::backend
