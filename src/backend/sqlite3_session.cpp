#include "backend/sqlite3_session.hpp"

#include <thread>

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
Sqlite3Session::Use Sqlite3Session::statement(Sqlite3Statement& slot, const char* sql) {
  if (!pooled_ || !slot.prepared()) slot.prepare(connection(), sql);
  return {slot, pooled_};
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
  // The switch to WAL does not wait for others that open the new file.
  const auto give_up = std::chrono::steady_clock::now() + lock_timeout_;
  Sqlite3Statement wal(configured_, "PRAGMA journal_mode = WAL");
  for (;;) {
    const int result = wal.try_run();
    if (result == SQLITE_OK) break;
    if ((result & 0xFF) != SQLITE_BUSY || std::chrono::steady_clock::now() > give_up) {
      throw_sqlite3_error(configured_, result, "cannot set the journal mode");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  for (const char* setting : {"PRAGMA synchronous = FULL", "PRAGMA foreign_keys = ON"}) {
    Sqlite3Statement(configured_, setting).run();
  }
  hooks_in_place(configured_);
  begin_.prepare(configured_, begin_sql);  // keeps the address from being used again, see `intact`
}

void Sqlite3Session::remember_settings() {
  int enabled = 0;
  sqlite3_db_config(configured_, SQLITE_DBCONFIG_ENABLE_FKEY, -1, &enabled);
  foreign_keys_ = enabled != 0;
  const auto value = [&](const char* pragma) {
    Sqlite3Statement query(configured_, pragma);
    return query.fetch() ? query.integer(0) : 0;
  };
  lock_timeout_ = std::chrono::milliseconds(value("PRAGMA busy_timeout"));
  restore_ = "PRAGMA synchronous = " + std::to_string(value("PRAGMA synchronous")) +
             "; PRAGMA query_only = " + std::to_string(value("PRAGMA query_only"));
}

void Sqlite3Session::use_schema(const std::string& /*always main*/) {}

bool Sqlite3Session::clean() noexcept {
  if (!intact()) return false;
  if (sqlite3_get_autocommit(configured_) == 0 && !try_exec(configured_, "ROLLBACK")) return false;
  restore();
  return try_exec(configured_, restore_);
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
    sqlite3_commit_hook(configured_, nullptr, nullptr);
    sqlite3_rollback_hook(configured_, nullptr, nullptr);
    try_exec(configured_, "ROLLBACK");  // frees the locks even if the handler has statements on it
    sqlite3_close_v2(configured_);      // which SOCI could not: at the latest with the last of them
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
    statement(begin_, begin_sql)->run();
    if (pooled_) {
      *hooks_ = {.guarding = true};
      hooks_in_place(db);
    } else {
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
  const auto insert = statement(insert_, insert_sql);
  insert->bind_text(1, row.consumer);
  insert->bind_text(2, row.business_key);
  insert->bind_text_or_null(3, row.message_id);
  insert->bind_blob(4, row.token->bytes().data(), row.token->bytes().size());
  insert->run();
  if (sqlite3_changes(db) == 1) return {ClaimStatus::inserted};

  const auto select = statement(select_, select_sql);
  select->bind_text(1, row.consumer);
  select->bind_text(2, row.business_key);
  ClaimReply reply{ClaimStatus::vanished};
  if (select->fetch()) {
    reply.status = ClaimStatus::exists;
    reply.row.state = select->text(0);
    reply.row.token_hex = select->text(1);
    if (!select->is_null(2)) reply.row.result = select->text(2);
    reply.row.lease_remaining = std::chrono::milliseconds(select->integer(3));
  }
  select->reset();
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
    const auto store = statement(store_, store_sql);
    store->bind_text(1, each.consumer);
    store->bind_text(2, each.business_key);
    store->bind_blob(3, each.result.data(), each.result.size());
    store->run();
  }
  hooks_->committing = true;
  const int result = statement(commit_, commit_sql)->try_run();
  hooks_->committing = false;
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
  const auto mark = statement(mark_, mark_sql);
  mark->bind_text(1, row.consumer);
  mark->bind_text(2, row.business_key);
  mark->bind_blob(3, row.token->bytes().data(), row.token->bytes().size());
  mark->run();
  return sqlite3_changes(db) > 0;
}

}  // namespace txinbox::inline TXINBOX_ABI::backend
