// The guarded transaction on MariaDB and MySQL.

#include <mysqld_error.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include "backend/mysql/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
bool MysqlSession::in_transaction() {
  MYSQL* db = connection();
  const auto flag = [db] { return (db->server_status & SERVER_STATUS_IN_TRANS) != 0; };
  if (!flag()) return false;
  exec(db, "DO 0");  // after a deadlock, the flag is out of date until a statement has succeeded
  return flag();
}

bool MysqlSession::guard_likely_intact() noexcept {
  const MYSQL* db = native();
  return db != nullptr && db->status == MYSQL_STATUS_READY && (db->server_status & SERVER_STATUS_IN_TRANS) != 0;
}

void MysqlSession::begin() {
  MYSQL* db = connection();
  tracker_.begin_transaction();
  if (pooled_ && in_one_statement()) {
    exec(db, compound("SET autocommit = 0; SAVEPOINT " + guard_));
    return;
  }
  MysqlReply reply;
  if (in_one_statement() && begin_of_caller("", reply)) return;
  check_settings_of_caller();
  open_sent_ = true;
  if (pooled_ || autocommit_) exec(db, "SET autocommit = 0");
  exec(db, "SAVEPOINT " + guard_);
}

void MysqlSession::prepare_statements() {
  MYSQL* db = connection();
  existing_.prepare(db, existing_sql(any_key));
  opening_.prepare(db, opening_sql(""));
  opening_without_wait_.close();
  opening_all_.close();
  closing_all_.close();
  closing_.prepare(db, any_closing_sql());
}

std::string MysqlSession::opening_sql(std::string_view before_insert) const {
  return compound(fmt::format("{}SET autocommit = 0; SAVEPOINT {}; {}{}", on_duplicate(any_key), guard_, before_insert,
                              any_claim_sql()));
}

/// The values of `opening_values` stand for the question marks of `on_duplicate` and of this statement.
std::string MysqlSession::any_claim_sql() const {
  return fmt::format("INSERT INTO {} {} VALUES (?, ?, ?, ?, 'torn', ?, UTC_TIMESTAMP(6), NULL)", table_, claim_columns);
}

std::array<std::string_view, 7> MysqlSession::opening_values(const ClaimRequest& row) {
  return {row.consumer,      row.business_key,        row.consumer,
          row.business_key,  or_null(row.message_id), or_null(row.content_hash),
          row.token->bytes()};
}

/// Returns the begin of a compound statement. If a key is a duplicate, the statement returns the existing row and ends
/// the transaction. A caller's session can have a snapshot, which a locking read ignores.
std::string MysqlSession::on_duplicate(const std::string& key) const {
  return fmt::format("DECLARE EXIT HANDLER FOR {} BEGIN {} {}; ROLLBACK{}; END; ", ER_DUP_ENTRY, existing_sql(key),
                     pooled_ ? "" : flavour_.lock_existing, pooled_ || autocommit_ ? "; SET autocommit = 1" : "");
}

/// In our transaction autocommit is off. A handler that has switched it on commits each statement. The protocol does
/// not tell whether a handler has run COMMIT after a ROLLBACK.
bool MysqlSession::may_have_foreign_commit() const noexcept {
  const MYSQL* db = native();
  return pooled_ && db != nullptr &&
         ((db->server_status & SERVER_STATUS_AUTOCOMMIT) != 0 || tracker_.was_autocommit_on());
}

std::optional<std::string> MysqlSession::code_of_handler_error() noexcept {
  MYSQL* db = native();
  if (db == nullptr) return std::nullopt;
  try {
    if (const unsigned code = mysql_errno(db)) return std::to_string(code);
    // When a prepared statement is closed, the client library forgets the number of the error. The destructor of the
    // statement's wrapper closes it. The server still knows the number.
    const auto error = query_row(db, "SHOW ERRORS LIMIT 1");
    return error ? error->at(1) : std::nullopt;
  } catch (const DatabaseError& error) {  // the connection is lost
    return error.code();
  } catch (...) {
    return std::nullopt;
  }
}

/// Shuts the connection down if a handler has left a result unread. The result can be an object of the handler, so
/// nobody else can read it. Without this, the client library waits for its rest when a statement or the connection is
/// closed, up to the read time-out.
void MysqlSession::give_up_unread_result() noexcept {
  MYSQL* db = native();
  if (db != nullptr && db->status != MYSQL_STATUS_READY) shutdown(static_cast<int>(mysql_get_socket(db)), SHUT_RDWR);
}

RollbackStatus MysqlSession::roll_back() noexcept {
  if (!pooled_ && !open_sent_) return RollbackStatus::ours;
  MYSQL* db = native();
  if (db == nullptr || !is_configured_connection(db)) return RollbackStatus::failed;
  if (db->status != MYSQL_STATUS_READY) {
    if (pooled_) give_up_unread_result();
    return RollbackStatus::failed;
  }
  drain(db);
  const std::string to_guard = "ROLLBACK TO SAVEPOINT " + guard_;
  if (in_one_statement()) {
    if (try_exec(db, compound(to_guard + "; ROLLBACK" + end_of_transaction())) == 0) {
      return !pooled_ || restore_after_compound(db) ? RollbackStatus::ours : RollbackStatus::failed;
    }
    if (pooled_) return reset() ? RollbackStatus::not_ours : RollbackStatus::failed;
  }
  const bool ours = try_exec(db, to_guard) == 0;
  if (try_exec(db, "ROLLBACK") != 0) return RollbackStatus::failed;
  if (!ours && try_exec(db, "UNLOCK TABLES") != 0)
    return RollbackStatus::failed;  // LOCK TABLES has committed the
                                    // transaction
  const bool restored = pooled_ ? restore(db) : !autocommit_ || try_exec(db, "SET autocommit = 1") == 0;
  if (!restored) return RollbackStatus::failed;
  return ours ? RollbackStatus::ours : RollbackStatus::not_ours;
}

/// InnoDB shows a commit and releases its locks before it writes its log. If we acknowledge a message because of such a
/// row, a crash loses both. Each commit that has changed something waits until the log is written up to itself. So a
/// commit of our own makes everything that we have read durable.
bool MysqlSession::wait_until_durable(std::string_view consumer, std::string_view business_key) {
  if (!shows_commits_early_) return true;
  MYSQL* db = connection();
  exec(db, keep_sql(consumer, business_key));
  const bool changed = mysql_affected_rows(db) == 1;
  if (!pooled_ && !autocommit_) exec(db, "COMMIT");
  return changed;
}

void MysqlSession::catch_up() {
  find_cluster();
  if (!flavour_.cluster) return;
  MYSQL* db = connection();
  if (flavour_.set_statement) {
    exec(db, "SET STATEMENT wsrep_sync_wait = 1 FOR SELECT 1");
    return;
  }
  exec(db, "SET SESSION wsrep_sync_wait = 1");
  try {
    exec(db, "SELECT 1");
  } catch (...) {
    try_exec(db, "SET SESSION wsrep_sync_wait = DEFAULT");
    throw;
  }
  exec(db, "SET SESSION wsrep_sync_wait = DEFAULT");
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
