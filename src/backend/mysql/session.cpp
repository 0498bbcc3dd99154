#include "backend/mysql/session.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <mysqld_error.h>

#include <array>

#include <fmt/format.h>

#include "backend/mysql/catalog.hpp"
#include "backend/mysql/dialect.hpp"
#include "backend/table_check.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

/// The settings that a handler can leave changed for the next one. Not here: the isolation level, whose name differs by
/// server, and sql_mode, which must be restored last.
constexpr std::array common_settings = {"character_set_client",
                                        "character_set_connection",
                                        "collation_connection",
                                        "character_set_results",
                                        "time_zone",
                                        "foreign_key_checks",
                                        "unique_checks",
                                        "sql_select_limit",
                                        "innodb_lock_wait_timeout",
                                        "lock_wait_timeout"};

bool is_mariadb(MYSQL* connection) {
  return std::string_view(mysql_get_server_info(connection)).find("MariaDB") != std::string_view::npos;
}

/// The client library switches keepalive on, but with the system's times, which are usually two hours.
void keep_alive(int socket) {
  const auto set = [socket](int level, int option, int value) {
    setsockopt(socket, level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 60);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(IPPROTO_TCP, TCP_KEEPCNT, 6);
}

}  // namespace

MysqlSession::MysqlSession(soci::session& sql, Ownership ownership)
    : Session(Birth::torn), sql_(sql), pooled_(ownership == Ownership::pool), is_mariadb_(is_mariadb(connection())) {}

MysqlSession::~MysqlSession() {
  MYSQL* db = mysql_native(sql_);
  if (tracker_.active() && db != nullptr) tracker_.end(db);
}

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
  tracker_.begin(db);
  keep_alive(static_cast<int>(mysql_get_socket(db)));
  const auto lock = ceil<seconds>(options.lock_timeout).count();
  const auto idle = ceil<seconds>(options.idle_transaction_timeout).count();
  const auto statement = options.statement_timeout.count();
  // Not by SET NAMES: the client library quotes the values that SOCI binds, and must know the character set.
  if (mysql_set_character_set(db, "utf8mb4") != 0) throw_mysql_error(db);
  exec(db, fmt::format("SET autocommit = 1, time_zone = '+00:00', {} = 'READ-COMMITTED', "
                       "sql_mode = CONCAT_WS(',', NULLIF(@@sql_mode, ''), 'STRICT_ALL_TABLES'), "
                       "innodb_lock_wait_timeout = {}, lock_wait_timeout = {}",
                       is_mariadb_ ? "tx_isolation" : "transaction_isolation", lock, lock));
  exec(db, is_mariadb_ ? fmt::format("SET max_statement_time = {}.{:03}, idle_transaction_timeout = {}",
                                     statement / 1000, statement % 1000, idle)
                       : fmt::format("SET max_execution_time = {}, wait_timeout = {}", statement, idle));
  if (is_mariadb_) {
    const auto provider = query_row(db, "SHOW GLOBAL VARIABLES LIKE 'wsrep_provider'");
    is_galera_ = provider && !provider->at(1)->empty() && provider->at(1) != "none";
  }
  // Then the default database is known without a round trip.
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

  reads_committed_ = row[0] != "READ-UNCOMMITTED";
  restore_ = fmt::format("SET autocommit = 1, {} = {}", isolation, quoted(row[0].value()));
  std::string all = fmt::format("CONCAT_WS(',', @@{}", isolation);
  std::size_t column = 1;
  for (const char* name : settings) {
    const std::string value = row[column].value_or("NULL");  // character_set_results may be
    const bool bare = !row[column++] || (!value.empty() && value.find_first_not_of("0123456789.") == std::string::npos);
    restore_ += fmt::format(", {} = {}", name, bare ? value : quoted(value));
    all += fmt::format(", @@{}", name);
  }
  if (!tracker_.active()) restore_ += ", timestamp = DEFAULT";  // the tracker tells when somebody stopped it
  restore_ += ", sql_mode = " + quoted(row[column++].value());
  all += ", @@sql_mode)";
  settings.insert(settings.end(), {isolation, "sql_mode"});
  tracker_.remember(settings);
  // Settings are rarely changed. Without a tracker, the compound statement reports a change by a warning, because it
  // cannot restore sql_mode itself. Its reply holds the number of warnings, unless max_error_count is 0.
  end_guard_ = tracker_.active() ? "SET autocommit = 1"
                                 : fmt::format(
                                       "SET autocommit = 1, timestamp = DEFAULT, max_error_count = 64; "
                                       "IF {} <> {} THEN SIGNAL SQLSTATE '01000'; END IF",
                                       all, quoted(query_row(db, "SELECT " + all).value()[0].value()));
  database_ = row[column++].value_or("");
  const std::string role = row[column++].value_or("NONE");
  const bool has_roles = row[column].value() != "0";
  // MariaDB returns the bare name, MySQL a quoted list.
  restore_role_ = !has_roles ? "" : "SET ROLE " + (role == "NONE" || !is_mariadb_ ? role : quoted(role));
}

void MysqlSession::use_schema(const std::string& schema) {
  dialect_ = make_mysql_dialect(schema);
  table_ = dialect_->table(consumed_message_table);
  if (in_one_statement()) prepare_statements();
}

std::vector<Problem> MysqlSession::unsafe_settings() {
  MYSQL* db = connection();
  std::vector<Problem> problems;
  const auto refuse = [&](std::string subject, std::string found, std::string remedy) {
    problems.push_back(
        {ErrorCode::unsafe_connection, {Severity::error, std::move(subject), std::move(found), std::move(remedy)}});
  };
  const MysqlRow row = query_row(db, "SELECT @@autocommit, @@sql_mode, @@log_bin AND @@sql_log_bin").value();
  autocommit_ = row[0] == "1";
  // With a binary log, a commit is on the disk before other sessions see it.
  shows_unsafe_commits_ = row[2] != "1";
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

bool MysqlSession::is_configured_connection(MYSQL* db) const noexcept {
  return !pooled_ || (thread_id_ != 0 && mysql_thread_id(db) == thread_id_);
}

bool MysqlSession::intact() noexcept {
  MYSQL* db = mysql_native(sql_);
  if (db == nullptr) return false;
  if (!pooled_) return true;
  if (!is_configured_connection(db)) return false;
  // If the server has sent something without a request, it has closed the connection.
  pollfd readable{static_cast<int>(mysql_get_socket(db)), POLLIN, 0};
  return readable.fd >= 0 && poll(&readable, 1, 0) == 0;
}

/// Restores what one SET cannot restore: the role and the default database. Both are rarely needed.
bool MysqlSession::restore_rest(MYSQL* db) noexcept {
  if (!restore_role_.empty() && try_exec(db, restore_role_) != 0) return false;
  if (database_.empty() || (db->db != nullptr && database_ == db->db)) return true;
  return mysql_select_db(db, database_.c_str()) == 0;
}

bool MysqlSession::restore_after_compound(MYSQL* db) noexcept {
  if (!tracker_.active()) return mysql_warning_count(db) == 0 ? restore_rest(db) : restore(db);
  const bool changed = tracker_.has_changed_variables() || tracker_.has_other_changes() || !tracker_.is_heard();
  if (changed) return restore(db);
  const bool restored = restore_rest(db);
  tracker_.forget_changes();
  return restored;
}

/// False: close the connection.
bool MysqlSession::restore(MYSQL* db) noexcept {
  if (!tracker_.active()) return try_exec(db, restore_) == 0 && restore_rest(db);
  if (tracker_.is_lost()) return false;
  const bool others = tracker_.has_other_changes();
  tracker_.begin_undo();
  bool restored = false;
  try {
    restored = try_exec(db, restore_ + tracker_.assignments()) == 0;
  } catch (...) {  // NOLINT(bugprone-empty-catch): no memory
  }
  restored = tracker_.end_undo() && restored && !(others && is_shadowed(db)) && restore_rest(db);
  tracker_.forget_changes();
  return restored;
}

/// Whether a temporary table of this connection hides a table of the inbox, or we cannot find out.
bool MysqlSession::is_shadowed(MYSQL* db) noexcept {
  if (!dialect_) return false;  // nothing of ours has run on it yet, and it is looked at again
  try {
    const auto row = query_row(db, "SHOW CREATE TABLE " + table_);
    return !row || row->at(1)->starts_with("CREATE TEMPORARY");
  } catch (...) {
    return true;
  }
}

bool MysqlSession::reset() noexcept {
  if (!intact()) return false;
  MYSQL* db = mysql_native(sql_);
  // ROLLBACK first: UNLOCK TABLES would commit an open transaction.
  return try_exec(db, "ROLLBACK") == 0 && try_exec(db, "UNLOCK TABLES") == 0 && restore(db);
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
