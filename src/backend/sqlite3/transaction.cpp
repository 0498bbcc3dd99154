// The guarded transaction on SQLite.

#include <chrono>
#include <utility>

#include "backend/sqlite3/session.hpp"
#include "backend/table_check.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

// The name begins with `main.`, because otherwise SQLite uses a temporary table of the same name.
constexpr auto insert_sql =
    "INSERT INTO main.txinbox_consumed_message (consumer, business_key, message_id, state, attempt_token, "
    "content_hash) VALUES (?1, ?2, ?3, ?6, ?4, ?5) ON CONFLICT (consumer, business_key) DO NOTHING";
constexpr auto insert_with_lease_sql =
    "INSERT INTO main.txinbox_consumed_message (consumer, business_key, message_id, state, attempt_token, "
    "content_hash, lease_expires_at) VALUES (?1, ?2, ?3, ?6, ?4, ?5, "
    "strftime('%Y-%m-%d %H:%M:%f', 'now', '+60 seconds')) ON CONFLICT (consumer, business_key) DO NOTHING";
static_assert(undecided_time == std::chrono::seconds(60));
// The CASE tests `lease_has_no_end`.
constexpr auto select_sql =
    "SELECT state, attempt_token, content_hash, result, "
    "CASE WHEN lease_owner IS NOT NULL AND (lease_expires_at IS NULL OR lease_fence IS NULL) THEN 0 "
    "ELSE CAST((julianday(lease_expires_at) - julianday('now')) * 86400000 AS INTEGER) END, "
    "lease_fence, CAST((julianday('now') - julianday(consumed_at)) * 86400000 AS INTEGER) "
    "FROM main.txinbox_consumed_message WHERE consumer = ?1 AND business_key = ?2";
constexpr auto confirm_sql =
    "UPDATE main.txinbox_consumed_message SET state = 'consumed', result = ?4 "
    "WHERE consumer = ?1 AND business_key = ?2 AND attempt_token = ?3";
constexpr auto confirm_with_lease_sql =
    "UPDATE main.txinbox_consumed_message SET state = 'consumed', result = ?4, lease_expires_at = NULL "
    "WHERE consumer = ?1 AND business_key = ?2 AND attempt_token = ?3";
constexpr auto is_there_sql =
    "SELECT 1 FROM main.txinbox_consumed_message WHERE consumer = ?1 AND business_key = ?2 AND attempt_token = ?3";
constexpr auto commit_sql = "COMMIT";
constexpr auto roll_back_sql = "ROLLBACK";

/// A busy handler. Its argument is the longest wait in milliseconds. Like SQLite's own handler, it adds up the time
/// that it has slept.
int wait_for_lock(void* timeout, int so_far) {
  constexpr int average = 2;
  if (so_far >= *static_cast<int*>(timeout) / average) return 0;
  sqlite3_sleep(average - 1 + so_far % 3);  // the variation avoids the same rhythm as the writer's
  return 1;
}

}  // namespace

bool Sqlite3Session::in_transaction() {
  ::sqlite3* db = connection();
  // The session could not roll back this transaction. The caller may have ended it since then, and may have begun
  // another one.
  if (left_open_ && try_sqlite3_exec(db, "ROLLBACK TO " + guard_)) left_open_ = !try_roll_back();
  return sqlite3_get_autocommit(db) == 0;
}

std::chrono::milliseconds Sqlite3Session::busy_timeout(::sqlite3* connection) {
  if (pooled_) return lock_timeout_;
  Sqlite3Statement query(connection, "PRAGMA busy_timeout");
  return std::chrono::milliseconds(query.fetch() ? query.integer(0) : 0);
}

void Sqlite3Session::enter_queue(::sqlite3* connection, std::chrono::milliseconds timeout) {
  if (!turn_) {
    const char* file = sqlite3_db_filename(connection, "main");
    turn_.emplace(WriterQueue::of(file == nullptr ? "" : file));
  }
  // After the time-out, try SQLite's own lock once more. This throws the error that the caller expects.
  turn_->begin(timeout);
}

void Sqlite3Session::begin() {
  ::sqlite3* db = connection();
  if (!pooled_) throw_on_errors(unsafe_settings());
  const auto timeout = busy_timeout(db);
  enter_queue(db, timeout);
  try {
    open_guarded(db, timeout);
  } catch (...) {
    note_broken(sqlite3_errcode(db));
    turn_->end();
    throw;
  }
}

/// Records that the connection may be broken: an earlier handler may have left an authorizer or a limit on it, which
/// makes a statement before the next handler fail. The errors that are listed here certainly have another cause.
void Sqlite3Session::note_broken(int result) noexcept {
  switch (result & 0xFF) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
    case SQLITE_INTERRUPT:
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_NOMEM:
    case SQLITE_CANTOPEN:
      return;
    default:
      broken_ = true;
  }
}

/// After a short time, SQLite's own busy handler tries the lock only ten times a second. If another process frees the
/// lock only for microseconds between its transactions, such a waiter gets no lock for many seconds. The whole queue of
/// this process then waits, too. If the time-out is zero, a caller may have set a busy handler of its own.
void Sqlite3Session::begin_immediate(::sqlite3* db, std::chrono::milliseconds timeout) {
  int longest = static_cast<int>(timeout.count());
  if (!pooled_) begin_.finalize();  // SQLite compiles it for the attached databases, and the service can attach others
  Sqlite3Statement& begin = statement(begin_, sqlite3_begin);
  if (longest <= 0) return begin.run();
  sqlite3_busy_handler(db, wait_for_lock, &longest);
  const int result = begin.try_run();
  sqlite3_busy_timeout(db, longest);
  if (result != SQLITE_OK) throw_sqlite3_error(db, result, "a transaction cannot begin");
}

void Sqlite3Session::open_guarded(::sqlite3* db, std::chrono::milliseconds timeout) {
  Sqlite3Statement& undo = statement(roll_back_, roll_back_sql);  // prepare it now: there may be no memory later
  begin_immediate(db, timeout);
  left_open_ = false;
  has_leases_ = false;
  try {
    if (pooled_) {
      *hooks_ = {.guarding = true};
      refused_commit_ = false;
      hooks_in_place(db);
    } else {
      statement(set_guard_, "SAVEPOINT " + guard_).run();
    }
  } catch (...) {
    undo.try_run();
    throw;
  }
}

ClaimReply Sqlite3Session::claim(const ClaimRequest& row) {
  try {
    return insert_claim(row);
  } catch (...) {
    note_broken(sqlite3_errcode(connection()));
    throw;
  }
}

ClaimReply Sqlite3Session::insert_claim(const ClaimRequest& row) {
  ::sqlite3* db = connection();
  has_leases_ = has_leases_ || has_lease(row);
  Sqlite3Statement& insert =
      has_lease(row) ? statement(insert_with_lease_, insert_with_lease_sql) : statement(insert_, insert_sql);
  insert.bind_text(1, row.consumer);
  insert.bind_text(2, row.business_key);
  insert.bind_text_or_null(3, row.message_id);
  insert.bind_blob(4, row.token->bytes());
  insert.bind_blob_or_null(5, row.content_hash);
  insert.bind_text(6, to_string(initial_state_));
  insert.run();
  if (sqlite3_changes(db) == 1) return {ClaimStatus::inserted};
  auto existing = read_existing(row);
  if (!existing) return {ClaimStatus::vanished};
  return {ClaimStatus::exists, std::move(*existing)};
}

// While a handler's statement has unread rows, the connection reads an old snapshot.
std::optional<ClaimedRow> Sqlite3Session::find_committed(const ClaimRequest& row) {
  ::sqlite3* db = connection();
  if (sqlite3_txn_state(db, "main") != SQLITE_TXN_NONE || (pooled_ && !reads_committed_)) return std::nullopt;
  auto existing = read_existing(row);
  if (pooled_ || !existing) return existing;
  // The caller can change this setting at any time.
  Sqlite3Statement dirty(db, "PRAGMA read_uncommitted");
  return dirty.fetch() && dirty.integer(0) == 0 ? std::move(existing) : std::nullopt;
}

std::optional<ClaimedRow> Sqlite3Session::read_existing(const ClaimRequest& row) {
  Sqlite3OpenFile::refuse_moved(connection());
  Sqlite3Statement& select = statement(select_, select_sql);
  const Sqlite3Reset reset(select);
  select.bind_text(1, row.consumer);
  select.bind_text(2, row.business_key);
  std::optional<ClaimedRow> existing;
  if (select.fetch()) {
    existing.emplace();
    existing->set_state(select.text(0));
    existing->token = select.text(1);
    existing->content_hash = select.text(2);
    if (!select.is_null(3)) existing->result = select.text(3);
    if (!select.is_null(4)) existing->lease_remaining = std::chrono::milliseconds(select.integer(4));
    existing->lease_fence = select.integer(5);
    existing->age = std::chrono::milliseconds(select.integer(6));
  }
  return existing;
}

/// Whether our hooks are still set and have not seen the end of the transaction. If somebody has replaced a hook, the
/// transaction may have ended unnoticed. The guard then stays lost, although this check has set our hooks again.
bool Sqlite3Session::guard_is_there(::sqlite3* db) noexcept {
  if (!intact()) return false;
  if (!hooks_in_place(db)) hooks_->lost = true;
  return !hooks_->lost && sqlite3_get_autocommit(db) == 0;
}

bool Sqlite3Session::guard_likely_intact() noexcept {
  ::sqlite3* db = native();
  return db != nullptr && !hooks_->lost && sqlite3_get_autocommit(db) == 0;
}

/// Whether the claim is still there. A handler can have deleted it.
bool Sqlite3Session::is_there(const ClaimToCommit& claim) {
  Sqlite3Statement& select = statement(is_there_, is_there_sql);
  const Sqlite3Reset reset(select);
  select.bind_text(1, claim.consumer);
  select.bind_text(2, claim.business_key);
  select.bind_blob(3, claim.token->bytes());
  return select.fetch();
}

/// A claim that was inserted as `consumed` needs only its result. It is looked for only if a handler can have deleted
/// it, because this costs a tenth of the work for a message.
bool Sqlite3Session::confirm(std::span<const ClaimToCommit> claims) {
  for (const ClaimToCommit& claim : claims) {
    if (!claim.result && (initial_state_ == InitialState::consumed || claim.confirmed)) {
      if ((!pooled_ || may_delete_claims_) && !is_there(claim)) return false;
      continue;
    }
    Sqlite3Statement& update =
        has_leases_ ? statement(confirm_with_lease_, confirm_with_lease_sql) : statement(confirm_, confirm_sql);
    update.bind_text(1, claim.consumer);
    update.bind_text(2, claim.business_key);
    update.bind_blob(3, claim.token->bytes());
    if (claim.result) {
      update.bind_blob(4, *claim.result);
    } else {
      update.bind_null(4);
    }
    update.run();
    if (sqlite3_changes(connection()) != 1) return false;
  }
  return true;
}

CommitStatus Sqlite3Session::commit(std::span<const ClaimToCommit> claims, std::span<const std::string> writes) {
  ::sqlite3* db = native();
  if (db == nullptr || sqlite3_get_autocommit(db) != 0) return CommitStatus::not_ours;
  Sqlite3Statement& undo = statement(roll_back_, roll_back_sql);  // prepare it now: there may be no memory later
  if (pooled_ ? !guard_is_there(db) : !try_run(release_guard_, "RELEASE " + guard_)) return CommitStatus::not_ours;
  try {
    if (!confirm(claims)) return CommitStatus::not_ours;
    for (const std::string& sql : writes) execute(sql);
    Sqlite3OpenFile::refuse_moved(db);
    hooks_->committing = true;
    const int result = statement(commit_, commit_sql).try_run();
    hooks_->committing = false;
    if (result != SQLITE_OK) throw_sqlite3_error(db, result, "COMMIT failed");
  } catch (...) {
    if (sqlite3_get_autocommit(db) == 0) undo.try_run();
    throw;
  }
  restore();
  turn_->end();
  return CommitStatus::committed;
}

std::optional<std::string> Sqlite3Session::code_of_handler_error() noexcept {
  ::sqlite3* db = native();
  const int code = db == nullptr ? SQLITE_OK : sqlite3_extended_errcode(db);
  if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE) return std::nullopt;
  return std::to_string(code);
}

RollbackStatus Sqlite3Session::roll_back() noexcept {
  const EndTurn end_turn{turn_};

  ::sqlite3* db = native();
  if (!intact()) return RollbackStatus::failed;
  const bool open = sqlite3_get_autocommit(db) == 0;
  const bool ours = open && (pooled_ ? guard_is_there(db) : try_run(return_to_guard_, "ROLLBACK TO " + guard_));
  refused_commit_ = hooks_->refused;
  *hooks_ = {};
  left_open_ = open && !try_roll_back();
  if (left_open_) return RollbackStatus::failed;
  restore();
  return ours ? RollbackStatus::ours : RollbackStatus::not_ours;
}

bool Sqlite3Session::try_roll_back() noexcept { return try_run(roll_back_, roll_back_sql); }

bool Sqlite3Session::verify_guard() {
  ::sqlite3* db = native();
  if (db == nullptr) return false;  // the handler has closed the session
  if (pooled_) return guard_is_there(db);
  Sqlite3Statement& undo = statement(roll_back_, roll_back_sql);  // prepare it now: there may be no memory later
  if (!try_sqlite3_exec(db, "RELEASE " + guard_)) return false;
  if (try_sqlite3_exec(db, "SAVEPOINT " + guard_)) return true;
  undo.try_run();
  return false;
}

void Sqlite3Session::savepoint() { Sqlite3Statement(connection(), "SAVEPOINT " + step_).run(); }

bool Sqlite3Session::release_savepoint(const ClaimToCommit* claim) {
  ::sqlite3* db = native();
  if (db == nullptr || (pooled_ && !guard_is_there(db)) || !try_sqlite3_exec(db, "RELEASE " + step_)) return false;
  return claim == nullptr || confirm({claim, 1});
}

bool Sqlite3Session::rollback_to_savepoint() noexcept {
  ::sqlite3* db = native();
  if (db == nullptr || (pooled_ && !guard_is_there(db))) return false;
  return try_sqlite3_exec(db, "ROLLBACK TO " + step_) && try_sqlite3_exec(db, "RELEASE " + step_);
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
