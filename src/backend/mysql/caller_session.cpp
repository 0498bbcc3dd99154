// The transaction on a session of the caller, on MariaDB: it begins with one statement, which also finds out whether
// somebody has changed the settings of the session since they were checked.

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
  changed_settings_ = fmt::format(
      "NOT (@@in_transaction = 0 AND @@autocommit <=> {} AND @@sql_mode <=> {} AND ({}) <=> {})",
      settings[0].value_or("NULL"), hex_literal(sql_mode), flavour_.logs_commits(), settings[2].value_or("NULL"));
  // In the mode ORACLE, a compound statement has another syntax. Without this flag of the client, it returns no rows.
  takes_compounds_ =
      sql_mode.find("ORACLE") == std::string::npos && (native()->client_flag & CLIENT_MULTI_RESULTS) != 0;
}

/// False also if the client library knows of another autocommit: then the caller has changed it, or has reconnected.
bool MysqlSession::will_check_settings() noexcept {
  const MYSQL* db = native();
  return !pooled_ && in_one_statement() && db != nullptr &&
         ((db->server_status & SERVER_STATUS_AUTOCOMMIT) != 0) == autocommit_;
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

/// Begins a transaction with one compound statement. With `row`, its last statement inserts this claim. Returns the
/// number of the error, or 0. Returns none, and has begun nothing, if the session takes no compound statements.
///
/// Errors: `Error` unsafe_connection and transaction_open; nothing was begun then.
std::optional<unsigned> MysqlSession::try_begin_of_caller(const ClaimRequest* row, const std::string& statements,
                                                          MysqlReply& reply) {
  MYSQL* db = connection();
  constexpr int tries = 5;  // usually the second one succeeds; a proxy could give each one another server
  for (int i = 0; i < tries && in_one_statement(); ++i) {
    open_sent_ = false;
    if (reconnects(db)) throw_on_errors(unsafe_settings());
    const std::string sql = compound(fmt::format(
        "{}IF {} THEN SELECT 1; ELSE {}SAVEPOINT {}; {}END IF",
        row != nullptr ? on_duplicate(key_condition(row->consumer, row->business_key)) : "", changed_settings_,
        autocommit_ ? "SET autocommit = 0; " : "", guard_, statements.empty() ? "" : statements + "; "));
    open_sent_ = true;
    const unsigned error = try_query(db, sql, reply);
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

/// Does the same without a claim. Returns false if it has begun nothing.
bool MysqlSession::begin_of_caller(const std::string& statements, MysqlReply& reply) {
  const auto error = try_begin_of_caller(nullptr, statements, reply);
  if (error.value_or(0) != 0) throw_mysql_error(connection());
  return error.has_value();
}

ClaimReply MysqlSession::open_and_claim_of_caller(const ClaimRequest& row) {
  MysqlReply reply;
  const auto error =
      try_begin_of_caller(&row, row.waits ? claim_sql(row) : std::string(no_lock_wait) + claim_sql(row), reply);
  if (!error) return Session::open_and_claim(row);
  if (!row.waits && error == ER_LOCK_WAIT_TIMEOUT) return {ClaimStatus::locked};
  if (*error != 0) throw_mysql_error(connection());
  MysqlStatement::Reply one{.has_rows = reply.has_rows};
  if (!reply.rows.empty()) one.row = std::move(reply.rows.front());
  return claim_reply(std::move(one));
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
