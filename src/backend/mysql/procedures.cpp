// The guarded transaction on MySQL. V1__inbox.sql creates one procedure that begins it, and one that commits it.

#include <mysqld_error.h>

#include <array>

#include <fmt/format.h>

#include "backend/mysql/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

/// Whether the procedure does not exist, or the user may not execute it. The server uses the first number also for a
/// missing savepoint.
bool is_missing(unsigned error) { return error == ER_SP_DOES_NOT_EXIST || error == ER_PROCACCESS_DENIED_ERROR; }

}  // namespace

void MysqlSession::prepare_procedures(const std::string& schema) {
  MYSQL* db = connection();
  const auto call = [&](std::string_view procedure, std::string_view values) {
    return fmt::format("CALL {}.{}({})", quoted_identifier(schema), procedure, values);
  };
  try {
    opening_.prepare(db, call("txinbox_begin_and_claim", "?, ?, ?, ?, ?"));
    closing_.prepare(db, call("txinbox_confirm_and_commit", "?, ?, ?, ?"));
  } catch (const DatabaseError& error) {
    if (pooled_ && !is_missing(mysql_number(error))) throw;  // the service can have too many statements prepared
    flavour_.procedures = false;
    return;
  }
  if (pooled_) existing_.prepare(db, existing_sql(any_key));
  guard_ = "txinbox_message";  // the name of the savepoint in the procedures
}

/// Whether the calls are prepared. The service can have reset its connection, which loses them.
bool MysqlSession::keeps_procedures() {
  MYSQL* db = connection();
  return pooled_ || (opening_.keep_prepared_on(db) && closing_.keep_prepared_on(db));
}

std::optional<ClaimReply> MysqlSession::call_begin_and_claim(const ClaimRequest& row) {
  if (!keeps_procedures()) return std::nullopt;
  open_sent_ = true;
  const unsigned error = opening_.try_run(std::array{row.consumer, row.business_key, value_or_null(row.message_id),
                                                     value_or_null(row.content_hash), row.token->bytes()});
  if (is_missing(error)) {
    flavour_.procedures = false;
    return std::nullopt;
  }
  if (error == ER_UNKNOWN_STMT_HANDLER && !pooled_) {
    opening_.close();
    return std::nullopt;
  }
  if (error != 0) opening_.throw_error();
  return claim_reply(opening_.take_reply());
}

/// Returns none if nothing was committed. The single statements then find out whether the savepoint or the procedure is
/// missing.
std::optional<CommitStatus> MysqlSession::call_confirm_and_commit(MYSQL* db, const ClaimToCommit& claim) {
  if (drain(db) != 0) throw_mysql_error(db);
  if (!closing_.prepared_on(db)) return std::nullopt;
  commit_sent_ = true;
  const unsigned error = run_closing(claim);
  if (is_missing(error) || (error == ER_UNKNOWN_STMT_HANDLER && !pooled_)) {
    commit_sent_ = false;
    return std::nullopt;
  }
  if (error != 0) closing_.throw_error();
  if (!pooled_) return CommitStatus::committed;
  // Without the tracker, the client does not know whether a handler has changed settings.
  if (!(tracker_.active() ? restore_after_compound(db) : restore(db))) thread_id_ = 0;
  return CommitStatus::committed;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
