// The savepoints of the transaction on MariaDB and MySQL: the guard, and the step of one message of a batch.

#include <mysqld_error.h>

#include "backend/mysql/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// Runs a statement that needs one of our savepoints. Returns false if the savepoint no longer exists.
bool MysqlSession::runs_on_savepoint(const std::string& sql) {
  MYSQL* db = native();
  if (db == nullptr || !is_configured_connection(db)) return false;
  if (drain(db) != 0) throw_mysql_error(db);
  const unsigned error = try_exec(db, sql);
  if (error == ER_SP_DOES_NOT_EXIST) return false;
  if (error != 0) throw_mysql_error(db);
  return true;
}

/// Does the same with several statements at once. Returns none, and has run nothing, if the session takes no compound
/// statements.
std::optional<bool> MysqlSession::run_together_on_savepoint(const std::string& statements) {
  if (!in_one_statement()) return std::nullopt;
  try {
    return runs_on_savepoint(compound(statements));
  } catch (const DatabaseError& error) {
    if (!refuses_compounds(mysql_number(error))) throw;
    return std::nullopt;
  }
}

bool MysqlSession::verify_guard() {
  const std::string release = "RELEASE SAVEPOINT " + guard_;
  const std::string set_again = "SAVEPOINT " + guard_;
  if (const auto done = run_together_on_savepoint(release + "; " + set_again)) return *done;
  return runs_on_savepoint(release) && runs_on_savepoint(set_again);
}

void MysqlSession::savepoint() { exec(connection(), "SAVEPOINT " + step_); }

bool MysqlSession::release_savepoint(const ClaimToCommit* claim) {
  const std::string release = "RELEASE SAVEPOINT " + step_;
  if (claim == nullptr) return runs_on_savepoint(release);
  if (const auto done = run_together_on_savepoint(release + closing_statements({claim, 1}, {}))) return *done;
  return runs_on_savepoint(release) && confirm({claim, 1});
}

bool MysqlSession::rollback_to_savepoint() noexcept {
  MYSQL* db = native();
  if (db == nullptr || !is_configured_connection(db)) return false;
  drain(db);
  return try_exec(db, "ROLLBACK TO SAVEPOINT " + step_) == 0 && try_exec(db, "RELEASE SAVEPOINT " + step_) == 0;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
