// A purge on SQLite. It finds the rows with reads, which block no writer. It holds the writer's lock only while it
// removes the rows.

#include <fmt/format.h>

#include "backend/sqlite3/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

PurgeReply Sqlite3Session::purge_some(const PurgeBatch& batch) {
  Sqlite3OpenFile::refuse_moved(connection());
  std::vector<PurgeCandidate> candidates = find_old(batch);
  PurgeReply reply = choose(dialect(), batch, candidates);
  if (!candidates.empty()) reply.removed = remove_old(batch, candidates, reply.waited);
  return reply;
}

std::vector<PurgeCandidate> Sqlite3Session::find_old(const PurgeBatch& batch) {
  const std::size_t keys = batch.target.key.size();
  Sqlite3Statement look(
      connection(), look_sql(dialect(), batch, fmt::format("{}, {}", key_columns(batch.target), batch.target.time)));
  std::vector<PurgeCandidate> candidates;
  while (look.fetch()) {
    PurgeCandidate& candidate = candidates.emplace_back();
    for (std::size_t i = 0; i < keys; ++i) candidate.key.push_back(look.text(static_cast<int>(i)));
    candidate.time = look.text(static_cast<int>(keys));
    candidate.matches = look.integer(static_cast<int>(keys) + 1) != 0;
  }
  return candidates;
}

std::size_t Sqlite3Session::remove_old(const PurgeBatch& batch, const std::vector<PurgeCandidate>& candidates,
                                       std::chrono::nanoseconds& waited) {
  const PurgeTarget& target = batch.target;
  std::string sql =
      fmt::format("DELETE FROM {} WHERE {}", dialect().table(target.table), removal_condition(dialect(), batch));
  for (std::size_t i = 0; i < target.key.size(); ++i) sql += fmt::format(" AND {} = ?{}", target.key[i].column, i + 1);

  ::sqlite3* db = connection();
  Sqlite3Statement remove(db, sql);
  Sqlite3Statement undo(db, "ROLLBACK");  // prepare it now: there may be no memory later
  std::size_t removed = 0;
  const auto asked = std::chrono::steady_clock::now();
  const auto timeout = busy_timeout(db);
  enter_queue(db, timeout);
  const EndTurn end_turn{turn_};
  begin_immediate(db, timeout);
  waited = std::chrono::steady_clock::now() - asked;
  try {
    for (const PurgeCandidate& each : candidates) {
      for (std::size_t i = 0; i < target.key.size(); ++i) {
        const int position = static_cast<int>(i) + 1;
        if (target.key[i].is_text) {
          remove.bind_text(position, each.key[i]);
        } else {
          remove.bind_blob(position, each.key[i]);
        }
      }
      remove.run();
      removed += static_cast<std::size_t>(sqlite3_changes(db));
    }
    Sqlite3Statement(db, "COMMIT").run();
  } catch (...) {
    if (sqlite3_get_autocommit(db) == 0) undo.try_run();
    throw;
  }
  return removed;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
