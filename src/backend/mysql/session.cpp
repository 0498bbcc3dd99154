#include "backend/mysql/session.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <mysqld_error.h>

#include <set>

#include <fmt/format.h>

#include "backend/mysql/parts.hpp"
#include "backend/table_check.hpp"
#include "base/hex.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

/// Returns which variables exist on a server that we do not know.
std::set<std::string, std::less<>> existing_variables(MYSQL* db) {
  std::string names;
  for (const std::string_view name : variables_to_ask_for()) names += (names.empty() ? "" : ", ") + quoted(name);
  std::set<std::string, std::less<>> found;
  for (MysqlRow& row : query_rows(db, fmt::format("SHOW VARIABLES WHERE Variable_name IN ({})", names))) {
    if (row[0]) found.insert(std::move(*row[0]));
  }
  return found;
}

/// Sets shorter times for keepalive. The client library switches keepalive on, but with the system's times, which are
/// usually two hours.
void keep_alive(int socket) {
  const auto set = [socket](int level, int option, int value) {
    setsockopt(socket, level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 60);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(IPPROTO_TCP, TCP_KEEPCNT, 6);
}

/// Whether the client library learns of each change of the default database. The server must report it, and a proxy
/// between them may not pass the report on. `database` is the default database.
bool hears_schema(MYSQL* db, const std::string& database) {
  if (try_exec(db, "USE " + quoted_identifier(database)) != 0) return false;
  const char* name = nullptr;
  std::size_t size = 0;
  return mysql_session_track_get_first(db, SESSION_TRACK_SCHEMA, &name, &size) == 0;
}

}  // namespace

MysqlSession::MysqlSession(ConnectionPtr owner, Ownership ownership)
    : Session(InitialState::torn, std::move(owner)),
      pooled_(ownership == Ownership::pool),
      flavour_(flavour_of(parse_server_version(mysql_get_server_info(connection())))) {}

MysqlSession::~MysqlSession() {
  MYSQL* db = native();
  if (pooled_) give_up_unread_result();
  if (!pooled_) {
    for (MysqlStatement* each : {&opening_, &closing_, &existing_, &settings_}) each->close_if_idle();
  }
  if (tracker_.active() && db != nullptr) tracker_.end(db);
}

MYSQL* MysqlSession::connection() {
  MYSQL* connection = native();
  if (connection == nullptr) throw Error(ErrorCode::unsupported_database, "the session is not connected");
  return connection;
}

void MysqlSession::configure(const PoolOptions& options) {
  MYSQL* db = connection();
  thread_id_ = mysql_thread_id(db);
  tracker_.begin(db);
  keep_alive(static_cast<int>(mysql_get_socket(db)));
  // Do not use SET NAMES here: the client library quotes the values that SOCI binds, so it must know the character set.
  if (mysql_set_character_set(db, "utf8mb4") != 0) throw_mysql_error(db);
  try {
    set_settings(options);
  } catch (const DatabaseError& error) {
    // A proxy can report the version of another server than the one to which it connects.
    if (mysql_number(error) != ER_UNKNOWN_SYSTEM_VARIABLE || !flavour_.has_all_variables) throw;
    flavour_ = Flavour();
    set_settings(options);
  }
}

void MysqlSession::set_settings(const PoolOptions& options) {
  using std::chrono::ceil;
  using std::chrono::seconds;
  MYSQL* db = connection();
  const bool is_known = flavour_.has_all_variables;
  if (!is_known) {
    flavour_.keep_existing(existing_variables(db));
    // Vitess shows the clock as a variable, and refuses to set it. Then no handler can stop it, either.
    const bool has_clock = !flavour_.clock.empty();
    if (has_clock && try_exec(db, fmt::format("SET {} = DEFAULT", flavour_.clock)) != 0) flavour_.clock = {};
    // A crash between the commits of two shards would leave a claim without the rows of its handler.
    constexpr std::string_view mode = "transaction_mode";
    if (try_exec(db, fmt::format("SET {} = 'SINGLE'", mode)) == 0) flavour_.transaction_mode = mode;
  }
  std::string all = "SET autocommit = 1, sql_mode = CONCAT_WS(',', NULLIF(@@sql_mode, ''), 'STRICT_ALL_TABLES')";
  if (!flavour_.isolation.empty()) all += fmt::format(", {} = 'READ-COMMITTED'", flavour_.isolation);
  // A user with READ ONLY ADMIN or SUPER may write on a replica. A key would then take effect there and on the primary.
  if (is_known) all += fmt::format(", {} = CONCAT(@@global.read_only) NOT IN ('0', 'OFF')", flavour_.read_only);

  std::vector<std::string> wanted = {"time_zone = '+00:00'"};
  const auto limit = [&](std::string_view name, const auto& value) {
    if (!name.empty()) wanted.push_back(fmt::format("{} = {}", name, value));
  };
  const auto lock = ceil<seconds>(options.lock_timeout).count();
  const auto statement = options.statement_timeout.count();
  limit("innodb_lock_wait_timeout", lock);
  limit("lock_wait_timeout", lock);
  limit(flavour_.statement_seconds, fmt::format("{}.{:03}", statement / 1000, statement % 1000));
  limit(flavour_.statement_milliseconds, statement);
  limit(flavour_.idle_seconds, ceil<seconds>(options.idle_transaction_timeout).count());
  using std::chrono::microseconds;
  limit(flavour_.statement_microseconds, microseconds(options.statement_timeout).count());
  limit(flavour_.lock_microseconds, microseconds(options.lock_timeout).count());
  limit(flavour_.idle_microseconds, microseconds(options.idle_transaction_timeout).count());
  if (is_known) {
    for (const std::string& each : wanted) all += ", " + each;
  }
  exec(db, all);
  if (!is_known) {
    for (const std::string& each : wanted) try_exec(db, "SET " + each);
  }
  find_cluster();
  tracks_schema_ = try_exec(db, "SET session_track_schema = 1") == 0 &&
                   (tracker_.active() || (db->db != nullptr && hears_schema(db, db->db)));
}

void MysqlSession::remember_settings() {
  MYSQL* db = connection();
  std::vector<std::string_view> settings = flavour_.restored();
  settings.emplace_back("sql_mode");
  std::string query = fmt::format("SELECT {}, DATABASE()", flavour_.logs_commits());
  for (const std::string_view name : settings) query += fmt::format(", @@{}", name);
  if (flavour_.applicable_roles) {
    query += ", CURRENT_ROLE(), (SELECT count(*) FROM information_schema.applicable_roles)";
  }
  const MysqlRow row = query_row(db, query).value();

  shows_commits_early_ = row[0] != "1";
  database_ = row[1].value_or("");
  restore_ = "SET autocommit = 1";
  std::string all;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const std::string_view name = settings[i];
    const auto& found = row[i + 2];
    const std::string value = found.value_or("NULL");  // character_set_results can be NULL
    if (name == flavour_.isolation) {
      reads_committed_ = flavour_.has_all_variables && value != "READ-UNCOMMITTED";
      // At this isolation level a plain read also sees the last committed row. If it finds no row nevertheless, the
      // message runs again.
      if (!flavour_.has_all_variables && value == "READ-COMMITTED") flavour_.lock_existing = {};
    }
    const bool bare = !found || (!value.empty() && value.find_first_not_of("0123456789.") == std::string::npos);
    // The tracker reports when a handler has stopped the clock.
    if (name == "sql_mode" && !tracker_.active() && !flavour_.clock.empty()) {
      restore_ += fmt::format(", {} = DEFAULT", flavour_.clock);
    }
    restore_ += fmt::format(", {} = {}", name, bare ? value : quoted(value));
    all += fmt::format(", @@{}", name);
  }
  tracker_.remember(settings);
  // Handlers rarely change settings. Without a tracker, the compound statement reports a change by a warning, because
  // it cannot restore sql_mode itself. Its reply contains the number of warnings, unless max_error_count is 0.
  end_guard_ = "SET autocommit = 1";
  if (flavour_.compound_statements && !tracker_.active()) {
    all = fmt::format("CONCAT_WS(','{})", all);
    end_guard_ +=
        fmt::format(", timestamp = DEFAULT, max_error_count = 64; IF {} <> {} THEN SIGNAL SQLSTATE '01000'; END IF",
                    all, quoted(query_row(db, "SELECT " + all).value()[0].value()));
  }
  remember_role(flavour_.applicable_roles ? std::span(row).last(2) : std::span<const std::optional<std::string>>());
}

/// `found` has the role, and how many roles the user has. It is empty if the server cannot count the roles.
void MysqlSession::remember_role(std::span<const std::optional<std::string>> found) {
  restore_role_.clear();
  std::string role = "NONE";
  if (found.empty()) {
    try {
      role = query_row(connection(), "SELECT CURRENT_ROLE()").value()[0].value_or(role);
    } catch (const DatabaseError&) {
      return;  // the server has no roles
    }
  } else {
    if (found[1] == "0") return;
    role = found[0].value_or(role);
  }
  // MariaDB returns the plain name. MySQL returns a list in backticks.
  restore_role_ = "SET ROLE " + (role == "NONE" || role.starts_with('`') ? role : quoted(role));
  // Vitess names a role, and refuses to set one. Then no handler can change it, either.
  if (found.empty() && try_exec(connection(), restore_role_) != 0) restore_role_.clear();
}

void MysqlSession::use_schema(const std::string& schema) {
  schema_ = schema;
  if (!pooled_) {
    default_database_ = found_database_;
    is_just_read_ = true;
    tracks_schema_ = asked_tracker_ = false;
  }
  dialect_ = make_mysql_dialect(schema, flavour_.time_zone_in_statements);
  table_ = dialect_->table(consumed_message_table);
  if (pooled_ && in_one_statement()) {
    prepare_statements();
  } else if (pooled_ && flavour_.procedures) {
    prepare_procedures();
  }
}

std::vector<Problem> MysqlSession::unsafe_settings() {
  MYSQL* db = connection();
  std::vector<Problem> problems;
  const auto refuse = [&](std::string subject, std::string found, std::string remedy) {
    problems.push_back(
        {ErrorCode::unsafe_connection, {Severity::error, std::move(subject), std::move(found), std::move(remedy)}});
  };
  const MysqlRow row = query_row(db, fmt::format("SELECT @@autocommit, @@sql_mode, {}, HEX(DATABASE()), {}",
                                                 flavour_.logs_commits(), flavour_.schema_tracker()))
                           .value();
  checks_at_begin_ = false;
  autocommit_ = row[0] == "1";
  shows_commits_early_ = row[2] != "1";
  if (!is_strict(row[1].value_or(""))) {
    refuse("sql_mode", "it is not strict: what does not fit is cut, and two keys can become one",
           "SET SESSION sql_mode = CONCAT_WS(',', NULLIF(@@sql_mode, ''), 'STRICT_ALL_TABLES'); open_pool does so");
  }
  if (reconnects(db)) {
    refuse("reconnect", "after a silent reconnect the rest of a transaction would run by itself",
           "remove reconnect=1 from the connection string");
  }
  found_database_ = detail::from_hex(row[3].value_or(""));
  found_tracker_ = row[4] == "1";
  if (!pooled_ && !found_tracker_) tracks_schema_ = false;
  if (!pooled_ && problems.empty()) remember_settings_of_caller(row);
  return problems;
}

void MysqlSession::refuse_other_inbox() {
  if (pooled_ || std::exchange(is_just_read_, false) || knows_same_database()) return;
  MYSQL* db = connection();
  const std::string now = detail::from_hex(query_text(*connection_ptr(), "SELECT HEX(DATABASE())"));
  if (now != default_database_) {
    throw_on_errors({{ErrorCode::unsafe_connection,
                      {Severity::error, "default database",
                       fmt::format("it is {} now, and this consumer uses the inbox in {} since its first message",
                                   now.empty() ? "none" : now, default_database_),
                       "USE it again after the handler, or make a consumer for each database"}}});
  }
  if (found_tracker_ && !std::exchange(asked_tracker_, true)) tracks_schema_ = hears_schema(db, now);
}

/// Whether the client library knows that the default database is that of `use_schema`. A statement could not find this
/// out: in a prepared statement, DATABASE() is the default database at its preparation.
bool MysqlSession::knows_same_database() const noexcept {
  const MYSQL* db = native();
  return tracks_schema_ && db != nullptr && db->db != nullptr && default_database_ == db->db;
}

bool MysqlSession::is_configured_connection(MYSQL* db) const noexcept {
  return !pooled_ || (thread_id_ != 0 && mysql_thread_id(db) == thread_id_);
}

bool MysqlSession::intact() noexcept {
  MYSQL* db = native();
  if (db == nullptr) return false;
  if (!pooled_) return true;
  if (!is_configured_connection(db)) return false;
  // If the server has sent something without a request, it has closed the connection.
  pollfd readable{static_cast<int>(mysql_get_socket(db)), POLLIN, 0};
  return readable.fd >= 0 && poll(&readable, 1, 0) == 0;
}

/// Restores the role and the default database, which one SET cannot restore. Handlers rarely change them.
bool MysqlSession::restore_rest(MYSQL* db) noexcept {
  if (!restore_role_.empty() && try_exec(db, restore_role_) != 0) return false;
  if (database_.empty() || (tracks_schema_ && db->db != nullptr && database_ == db->db)) return true;
  return mysql_select_db(db, database_.c_str()) == 0;
}

bool MysqlSession::restore_after_compound(MYSQL* db) noexcept {
  if (!tracker_.active()) return mysql_warning_count(db) == 0 ? restore_rest(db) : restore(db);
  const bool changed = tracker_.may_have_other_changes() || !tracker_.is_heard();
  if (changed) return restore(db);
  const bool restored = restore_rest(db);
  tracker_.forget_changes();
  return restored;
}

/// Returns false if the connection must be closed.
bool MysqlSession::restore(MYSQL* db) noexcept {
  if (!tracker_.active()) return try_exec(db, restore_) == 0 && restore_rest(db);
  if (tracker_.is_lost()) return false;
  const bool others = tracker_.may_have_other_changes();
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

/// Whether a temporary table of this connection hides a table of the inbox. True also if this cannot be found out.
bool MysqlSession::is_shadowed(MYSQL* db) noexcept {
  if (!dialect_) return false;  // no statement of ours has run on it yet; the check will run again
  try {
    const auto row = query_row(db, "SHOW CREATE TABLE " + table_);
    return !row || row->at(1)->starts_with("CREATE TEMPORARY");
  } catch (...) {
    return true;
  }
}

bool MysqlSession::reset() noexcept {
  if (!intact()) return false;
  MYSQL* db = native();
  // Roll back first, because UNLOCK TABLES would commit an open transaction.
  return try_exec(db, "ROLLBACK") == 0 && try_exec(db, "UNLOCK TABLES") == 0 && restore(db);
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
