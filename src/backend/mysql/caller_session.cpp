// The transaction on a session of the caller. On MariaDB it begins with one statement, which also finds out whether
// somebody has changed the settings of the session since they were checked. On MySQL the settings are read before it
// begins. The statements of a usual message stay prepared.

#include <mysqld_error.h>

#include <utility>

#include <fmt/format.h>

#include "backend/mysql/session.hpp"
#include "backend/table_check.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// The settings are safe. They are the columns that `unsafe_settings` reads.
void MysqlSession::remember_settings_of_caller(const MysqlRow& settings) {
  const std::string sql_mode = settings[1].value_or("");
  std::string changed =
      fmt::format("NOT ({}@@autocommit <=> {} AND @@sql_mode <=> {} AND ({}) <=> {} AND {} <=> {})",
                  flavour_.compound_statements ? "@@in_transaction = 0 AND " : "", settings[0].value_or("NULL"),
                  hex_literal(sql_mode), flavour_.logs_commits(), settings[2].value_or("NULL"),
                  flavour_.schema_tracker(), settings[4].value_or("NULL"));
  if (changed != changed_settings_) {  // the texts of these statements contain it, or depend on autocommit
    if (flavour_.compound_statements) {
      opening_.close();
      closing_.close();
      existing_.close();
    }
    settings_.close();
  }
  changed_settings_ = std::move(changed);
  // In the mode ORACLE, a compound statement has another syntax. Without this flag of the client, it returns no rows.
  takes_compounds_ =
      sql_mode.find("ORACLE") == std::string::npos && (native()->client_flag & CLIENT_MULTI_RESULTS) != 0;
}

/// False also if the client library knows of another autocommit or default database: then the caller has changed it, or
/// has reconnected.
bool MysqlSession::may_know_settings() const noexcept {
  const MYSQL* db = native();
  return !pooled_ && (in_one_statement() || calls_procedures()) && db != nullptr &&
         ((db->server_status & SERVER_STATUS_AUTOCOMMIT) != 0) == autocommit_ && knows_same_database();
}

bool MysqlSession::will_check_settings() noexcept {
  checks_at_begin_ = may_know_settings();
  return checks_at_begin_;
}

/// Asks the server with a prepared statement whether the settings are those of the last check.
bool MysqlSession::has_known_settings() {
  MYSQL* db = connection();
  if (changed_settings_.empty() || reconnects(db)) return false;
  if (!settings_.prepared_on(db) && !settings_.try_prepare(db, "SELECT " + changed_settings_)) return false;
  if (settings_.try_run() != 0) {
    settings_.close();
    return false;
  }
  const auto rows = settings_.take_reply().rows;
  return !rows.empty() && rows[0][0] == "0";
}

void MysqlSession::check_settings_of_caller() {
  if (checks_at_begin_) {
    open_sent_ = false;
    if (!has_known_settings()) throw_on_errors(unsafe_settings());
    refuse_open_transaction(*this);
    checks_at_begin_ = false;
  }
  refuse_other_inbox();
}

/// Whether the error says that a caller's session takes no compound statements any more. Then none of their statements
/// was run.
bool MysqlSession::refuses_compounds(unsigned error) noexcept {
  if (pooled_ || error != ER_PARSE_ERROR) return false;
  takes_compounds_ = false;
  return true;
}

/// It reads a variable, because SHOW can begin a transaction if autocommit is off.
void MysqlSession::find_cluster() {
  if (knows_cluster_) return;
  if (flavour_.may_be_in_cluster) {
    MysqlReply provider;
    const unsigned error = try_query(connection(), "SELECT @@GLOBAL.wsrep_provider", provider);
    if (error != 0 && error != ER_UNKNOWN_SYSTEM_VARIABLE) throw_mysql_error(connection());
    const std::string name = provider.rows.empty() ? "" : provider.rows[0][0].value_or("");
    flavour_.cluster = !name.empty() && name != "none";
  }
  knows_cluster_ = true;
}

/// Returns a compound statement that begins a transaction. If settings have changed, it only returns one column.
std::string MysqlSession::begin_sql_of_caller(const std::string& declarations, const std::string& statements) const {
  return compound(fmt::format("{}IF {} THEN SELECT 1; ELSE {}SAVEPOINT {}; {}END IF", declarations, changed_settings_,
                              autocommit_ ? "SET autocommit = 0; " : "", guard_,
                              statements.empty() ? "" : statements + "; "));
}

/// Prepares the statements of a usual message, if they are not prepared. Returns false if the server refuses this, for
/// example because it keeps too many statements. Then this session does not try again.
bool MysqlSession::prepare_statements_of_caller() {
  MYSQL* db = connection();
  if (!keeps_prepared_) return false;
  keeps_prepared_ = (opening_.prepared_on(db) ||
                     opening_.try_prepare(db, begin_sql_of_caller(on_duplicate(any_key), any_claim_sql()))) &&
                    (closing_.prepared_on(db) || closing_.try_prepare(db, any_closing_sql()));
  return keeps_prepared_;
}

/// Begins a transaction with one compound statement, which `run` runs: it returns the number of the error, or 0.
/// Returns this number. Returns none, and has begun nothing, if the session takes no compound statements.
///
/// Errors: `Error` unsafe_connection and transaction_open; nothing was begun then.
std::optional<unsigned> MysqlSession::try_begin_of_caller(const std::function<unsigned(MysqlReply&)>& run,
                                                          MysqlReply& reply) {
  MYSQL* db = connection();
  constexpr int tries = 5;  // usually the second one succeeds; a proxy could give each one another server
  for (int i = 0; i < tries && in_one_statement(); ++i) {
    open_sent_ = false;
    if (reconnects(db)) throw_on_errors(unsafe_settings());
    refuse_other_inbox();
    reply = {};
    const unsigned error = run(reply);
    const bool is_refused = error == ER_PARSE_ERROR;
    const bool is_changed = reply.rows.size() == 1 && reply.rows[0].size() == 1;
    if (!is_changed && !is_refused) return error;
    open_sent_ = false;
    throw_on_errors(unsafe_settings());
    refuse_open_transaction(*this);
    if (is_refused && in_one_statement()) flavour_.compound_statements = false;  // a proxy does not know them
  }
  takes_compounds_ = false;
  return std::nullopt;
}

/// Begins a transaction without a claim. Returns false if it has begun nothing.
bool MysqlSession::begin_of_caller(const std::string& statements, MysqlReply& reply) {
  const auto run = [&](MysqlReply& to) {
    open_sent_ = true;
    return try_query(connection(), begin_sql_of_caller("", statements), to);
  };
  const auto error = try_begin_of_caller(run, reply);
  if (error.value_or(0) != 0) throw_mysql_error(connection());
  return error.has_value();
}

/// Begins a transaction and inserts the claim. Returns the number of the error, or 0.
unsigned MysqlSession::run_opening_of_caller(const ClaimRequest& row, MysqlReply& reply) {
  const bool is_prepared = row.waits && prepare_statements_of_caller();
  open_sent_ = true;
  if (is_prepared) {
    const unsigned error = opening_.try_run(opening_values(row));
    if (error == 0) reply = opening_.take_reply();
    if (error != ER_UNKNOWN_STMT_HANDLER) return error;
    opening_.close();  // the service has reset its connection
  }
  const std::string claim = row.waits ? claim_sql(row) : std::string(no_lock_wait) + claim_sql(row);
  return try_query(connection(),
                   begin_sql_of_caller(on_duplicate(key_condition(row.consumer, row.business_key)), claim), reply);
}

ClaimReply MysqlSession::open_and_claim_of_caller(const ClaimRequest& row) {
  MysqlReply reply;
  const auto error = try_begin_of_caller([&](MysqlReply& to) { return run_opening_of_caller(row, to); }, reply);
  if (!error) return Session::open_and_claim(row);
  if (!row.waits && error == ER_LOCK_WAIT_TIMEOUT) return {ClaimStatus::locked};
  if (*error != 0) throw_mysql_error(connection());
  return claim_reply(std::move(reply));
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
