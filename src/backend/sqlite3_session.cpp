#include "backend/sqlite3_session.hpp"

namespace txinbox::inline TXINBOX_ABI::backend {
namespace {

// `main.`: a temporary table of the same name would otherwise be taken first.
constexpr auto begin_sql = "BEGIN IMMEDIATE";
constexpr auto insert_sql =
    "INSERT INTO main.txinbox_consumed_message (consumer, business_key, message_id, state, attempt_token) "
    "VALUES (?1, ?2, ?3, 'consumed', ?4) ON CONFLICT (consumer, business_key) DO NOTHING";
constexpr auto select_sql =
    "SELECT state, lower(hex(attempt_token)), result, "
    "CAST(max(0, coalesce((julianday(lease_expires_at) - julianday('now')) * 86400000, 0)) AS INTEGER) "
    "FROM main.txinbox_consumed_message WHERE consumer = ?1 AND business_key = ?2";
constexpr auto store_sql =
    "UPDATE main.txinbox_consumed_message SET result = ?3 WHERE consumer = ?1 AND business_key = ?2";
constexpr auto commit_sql = "COMMIT";
constexpr auto mark_sql =
    "UPDATE main.txinbox_consumed_message SET state = 'torn' "
    "WHERE consumer = ?1 AND business_key = ?2 AND attempt_token = ?3 AND state = 'consumed'";

std::string guard_name(const Token& guard) { return "txinbox_" + guard.hex(); }

bool try_exec(::sqlite3* connection, const std::string& sql) noexcept {
  return sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
}

}  // namespace

Sqlite3Session::Sqlite3Session(soci::session& sql, Ownership ownership)
    : sql_(sql), pooled_(ownership == Ownership::pool) {}

Sqlite3Session::~Sqlite3Session() {
  if (configured_ != nullptr && intact()) {
    sqlite3_commit_hook(configured_, nullptr, nullptr);
    sqlite3_rollback_hook(configured_, nullptr, nullptr);
  }
  release_statements();
}

int Sqlite3Session::on_commit(void* hooks) {
  auto& h = *static_cast<Hooks*>(hooks);
  if (!h.guarding || h.committing) return 0;
  h.lost = true;  // a vetoed commit is rolled back, and the rollback hook is not told
  return 1;
}

void Sqlite3Session::on_rollback(void* hooks) {
  auto& h = *static_cast<Hooks*>(hooks);
  if (h.guarding) h.lost = true;
}

/// Sets the hooks and says whether they were ours before: a replaced hook, or a connection that the
/// handler opened anew, is thereby found.
bool Sqlite3Session::hooks_in_place(::sqlite3* connection) noexcept {
  const bool commit_ours = sqlite3_commit_hook(connection, on_commit, hooks_.get()) == hooks_.get();
  const bool rollback_ours = sqlite3_rollback_hook(connection, on_rollback, hooks_.get()) == hooks_.get();
  return commit_ours && rollback_ours;
}

::sqlite3* Sqlite3Session::connection() {
  ::sqlite3* connection = sqlite3_native(sql_);
  if (connection == nullptr) throw Error(ErrorCode::unsupported_database, "the SOCI session is not connected");
  return connection;
}

/// A pool's statements stay prepared. Those of a caller's session are used once: the caller may close
/// the session at any time, and SQLite refuses to close while statements are prepared.
Sqlite3Statement& Sqlite3Session::statement(Sqlite3Statement& slot, const char* sql) {
  if (!pooled_ || !slot.prepared()) slot.prepare(connection(), sql);
  return slot;
}

void Sqlite3Session::release_statements() noexcept {
  for (Sqlite3Statement* each : {&begin_, &insert_, &select_, &store_, &commit_, &mark_}) {
    each->finalize();
  }
}

void Sqlite3Session::configure(const PoolOptions& options) {
  lock_timeout_ = options.lock_timeout;
  configured_ = connection();
  sqlite3_busy_timeout(configured_, static_cast<int>(lock_timeout_.count()));
  // WAL is a property of the file and refused for those that have none (in memory); `doctor` tells.
  for (const char* setting : {"PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "PRAGMA foreign_keys = ON"}) {
    Sqlite3Statement(configured_, setting).run();
  }
  hooks_in_place(configured_);
}

void Sqlite3Session::remember_settings() {
  int enabled = 0;
  sqlite3_db_config(configured_, SQLITE_DBCONFIG_ENABLE_FKEY, -1, &enabled);
  foreign_keys_ = enabled != 0;
}

void Sqlite3Session::use_schema(const std::string& /*always main*/) {}

bool Sqlite3Session::clean() noexcept {
  if (!intact()) return false;
  if (sqlite3_get_autocommit(configured_) == 0 && !try_exec(configured_, "ROLLBACK")) return false;
  restore();
  return true;
}

/// Ends the guard, and undoes what a handler may have changed. None of it does I/O.
void Sqlite3Session::restore() noexcept {
  *hooks_ = {};
  if (!pooled_) return;
  hooks_in_place(configured_);
  sqlite3_busy_timeout(configured_, static_cast<int>(lock_timeout_.count()));
  sqlite3_db_config(configured_, SQLITE_DBCONFIG_ENABLE_FKEY, foreign_keys_ ? 1 : 0, nullptr);
}

/// A connection that the handler opened anew has another address: SQLite does not free the old one
/// while our statements are prepared on it.
bool Sqlite3Session::intact() noexcept {
  ::sqlite3* now = sqlite3_native(sql_);
  if (!pooled_) return now != nullptr;
  if (now == configured_ || configured_ == nullptr) return now != nullptr;
  if (begin_.prepared()) {
    release_statements();
    sqlite3_close(configured_);  // which SOCI could not: it rolls back and frees the locks
  }
  return false;
}

bool Sqlite3Session::in_transaction() { return sqlite3_get_autocommit(connection()) == 0; }

std::chrono::milliseconds Sqlite3Session::busy_timeout(::sqlite3* connection) {
  if (pooled_) return lock_timeout_;
  Sqlite3Statement query(connection, "PRAGMA busy_timeout");
  return std::chrono::milliseconds(query.fetch() ? query.integer(0) : 0);
}

void Sqlite3Session::enter_queue(::sqlite3* connection) {
  if (!turn_) {
    const char* file = sqlite3_db_filename(connection, "main");
    turn_.emplace(WriterQueue::of(file == nullptr ? "" : file));
  }
  // Over time: SQLite's own lock is asked once more, and throws the error that the caller expects.
  turn_->begin(busy_timeout(connection));
}

void Sqlite3Session::begin(const Token& guard) {
  ::sqlite3* db = connection();
  enter_queue(db);
  try {
    statement(begin_, begin_sql).run();
    if (pooled_) {
      *hooks_ = {.guarding = true};
      hooks_in_place(db);
    } else {
      begin_.finalize();
      Sqlite3Statement(db, "SAVEPOINT " + guard_name(guard)).run();
    }
  } catch (...) {
    if (sqlite3_get_autocommit(db) == 0) try_exec(db, "ROLLBACK");
    turn_->end();
    throw;
  }
}

ClaimReply Sqlite3Session::claim(const ClaimRow& row) {
  ::sqlite3* db = connection();
  auto& insert = statement(insert_, insert_sql);
  insert.bind_text(1, row.consumer);
  insert.bind_text(2, row.business_key);
  insert.bind_text_or_null(3, row.message_id);
  insert.bind_blob(4, row.token->bytes().data(), row.token->bytes().size());
  insert.run();
  const bool inserted = sqlite3_changes(db) == 1;
  if (!pooled_) insert.finalize();
  if (inserted) return {ClaimStatus::inserted};

  auto& select = statement(select_, select_sql);
  select.bind_text(1, row.consumer);
  select.bind_text(2, row.business_key);
  ClaimReply reply{ClaimStatus::vanished};
  if (select.fetch()) {
    reply.status = ClaimStatus::exists;
    reply.row.state = select.text(0);
    reply.row.token_hex = select.text(1);
    if (!select.is_null(2)) reply.row.result = select.text(2);
    reply.row.lease_remaining = std::chrono::milliseconds(select.integer(3));
  }
  select.reset();
  if (!pooled_) select.finalize();
  return reply;
}

CommitStatus Sqlite3Session::commit(const Token& guard, const std::vector<StoredResult>& results) {
  ::sqlite3* db = sqlite3_native(sql_);
  if (db == nullptr || sqlite3_get_autocommit(db) != 0) return CommitStatus::not_ours;
  if (pooled_) {
    if (!intact() || !hooks_in_place(db) || hooks_->lost) return CommitStatus::not_ours;
  } else if (!try_exec(db, "RELEASE " + guard_name(guard))) {
    return CommitStatus::not_ours;
  }
  for (const StoredResult& each : results) {
    auto& store = statement(store_, store_sql);
    store.bind_text(1, each.consumer);
    store.bind_text(2, each.business_key);
    store.bind_blob(3, each.result.data(), each.result.size());
    store.run();
    if (!pooled_) store.finalize();
  }
  hooks_->committing = true;
  const int result = statement(commit_, commit_sql).try_run();
  hooks_->committing = false;
  if (!pooled_) commit_.finalize();
  if (result != SQLITE_OK) throw_sqlite3_error(db, result, "COMMIT failed");
  restore();
  turn_->end();
  return CommitStatus::committed;
}

RollbackStatus Sqlite3Session::roll_back(const Token& guard) noexcept {
  struct EndTurn {
    std::optional<WriterTurn>& turn;
    ~EndTurn() {
      if (turn) turn->end();
    }
  } end_turn{turn_};

  ::sqlite3* db = sqlite3_native(sql_);
  if (!intact()) return RollbackStatus::failed;
  const bool open = sqlite3_get_autocommit(db) == 0;
  const bool ours =
      open && (pooled_ ? hooks_in_place(db) && !hooks_->lost : try_exec(db, "ROLLBACK TO " + guard_name(guard)));
  *hooks_ = {};
  if (open && !try_exec(db, "ROLLBACK")) return RollbackStatus::failed;
  restore();
  return ours ? RollbackStatus::ours : RollbackStatus::not_ours;
}

bool Sqlite3Session::mark_torn(const ClaimRow& row) {
  ::sqlite3* db = connection();
  auto& mark = statement(mark_, mark_sql);
  mark.bind_text(1, row.consumer);
  mark.bind_text(2, row.business_key);
  mark.bind_blob(3, row.token->bytes().data(), row.token->bytes().size());
  mark.run();
  const bool marked = sqlite3_changes(db) > 0;
  if (!pooled_) mark.finalize();
  return marked;
}

}  // namespace txinbox::inline TXINBOX_ABI::backend
