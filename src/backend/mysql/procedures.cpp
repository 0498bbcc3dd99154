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

void MysqlSession::prepare_procedures() {
  MYSQL* db = connection();
  const auto call = [&](std::string_view procedure, std::string_view values) {
    return fmt::format("CALL {}.{}({})", quoted_identifier(schema_), procedure, values);
  };
  try {
    opening_.prepare(db, call("txinbox_begin_and_claim", "?, ?, ?, ?, ?"));
    closing_.prepare(db, call("txinbox_confirm_and_commit", "?, ?, ?, ?"));
  } catch (const DatabaseError& error) {
    const unsigned number = mysql_number(error);
    if (!is_missing(number) && (pooled_ || number != ER_MAX_PREPARED_STMT_COUNT_REACHED)) throw;
    flavour_.procedures = false;
    return;
  }
  if (pooled_) existing_.prepare(db, existing_sql(any_key));
  guard_ = "txinbox_message";  // the name of the savepoint in the procedures
}

std::optional<ClaimReply> MysqlSession::call_begin_and_claim(const ClaimRequest& row) {
  MYSQL* db = connection();
  // A `Transaction` does not come here. So the savepoint of a service's own session has this known name only if the
  // session belongs to a consumer. The service can have reset its connection, which loses the prepared statements.
  if (!pooled_ && (!opening_.prepared_on(db) || !closing_.prepared_on(db))) prepare_procedures();
  if (!flavour_.procedures) return std::nullopt;
  open_sent_ = true;
  const unsigned error = opening_.try_run(std::array{row.consumer, row.business_key, or_null(row.message_id),
                                                     or_null(row.content_hash), row.token->bytes()});
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
  const unsigned error = closing_.try_run(closing_values(claim));
  const bool is_lost = error == ER_UNKNOWN_STMT_HANDLER && !pooled_;
  if (is_lost) closing_.close();
  if (is_missing(error) || is_lost) {
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
