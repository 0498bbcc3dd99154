#include "backend/sqlite3/session.hpp"

#include <optional>
#include <thread>

#include "backend/database_error.hpp"
#include "backend/sqlite3/parts.hpp"
#include "backend/table_check.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

bool has_file(::sqlite3* connection) noexcept {
  const char* file = sqlite3_db_filename(connection, "main");
  return file != nullptr && *file != '\0';
}

/// Returns the value of a pragma. Returns none if SQLite cannot read it.
std::optional<int> value_of(::sqlite3* connection, const std::string& pragma) noexcept {
  std::optional<int> value;
  const auto note = [](void* to, int, char** columns, char**) {
    if (columns[0] != nullptr) *static_cast<std::optional<int>*>(to) = static_cast<int>(number_in(columns[0]));
    return 0;
  };
  return sqlite3_exec(connection, pragma.c_str(), note, &value, nullptr) == SQLITE_OK ? value : std::nullopt;
}

/// Whether the connection has a temporary trigger on a table of the inbox. True also if this cannot be found out.
bool has_trigger_of_its_own(::sqlite3* connection) noexcept {
  bool found = false;
  const auto note = [](void* there, int, char**, char**) {
    *static_cast<bool*>(there) = true;
    return 0;
  };
  const int result = sqlite3_exec(
      connection, "SELECT 1 FROM temp.sqlite_master WHERE type = 'trigger' AND tbl_name LIKE 'txinbox!_%' ESCAPE '!'",
      note, &found, nullptr);
  return found || result != SQLITE_OK;
}

}  // namespace

Sqlite3Session::Sqlite3Session(ConnectionPtr owner, Ownership ownership)
    : Session(ownership == Ownership::pool ? InitialState::consumed : InitialState::torn, std::move(owner)),
      pooled_(ownership == Ownership::pool) {}

Sqlite3Session::~Sqlite3Session() {
  if (pooled_ && configured_ != nullptr && intact()) remove_hooks();
  release_statements();
}

void Sqlite3Session::remove_hooks() noexcept {
  sqlite3_commit_hook(configured_, nullptr, nullptr);
  sqlite3_rollback_hook(configured_, nullptr, nullptr);
  sqlite3_set_authorizer(configured_, nullptr, nullptr);
}

int Sqlite3Session::on_commit(void* hooks) {
  auto& h = *static_cast<Hooks*>(hooks);
  if (!h.guarding || h.committing) return 0;
  h.lost = h.refused = true;  // SQLite rolls back a refused commit without calling the rollback hook
  return 1;
}

/// An authorizer. SQLite calls it when it compiles a statement, also for the statement's triggers and foreign keys.
int Sqlite3Session::on_prepare(void* session, int action, const char* table, const char*, const char*, const char*) {
  auto& self = *static_cast<Sqlite3Session*>(session);
  const bool changes = action == SQLITE_DELETE || action == SQLITE_UPDATE;
  const bool of_handler = self.hooks_->guarding && !self.is_own_sql_;
  if (changes && of_handler && table == consumed_message_table) self.may_delete_claims_ = true;
  return SQLITE_OK;
}

void Sqlite3Session::on_rollback(void* hooks) {
  auto& h = *static_cast<Hooks*>(hooks);
  if (h.guarding) h.lost = true;
}

/// Sets the hooks, and returns whether ours were set before. If they were not, somebody has replaced a hook, or the
/// handler has opened a new connection.
bool Sqlite3Session::hooks_in_place(::sqlite3* connection) noexcept {
  const bool commit_ours = sqlite3_commit_hook(connection, on_commit, hooks_.get()) == hooks_.get();
  const bool rollback_ours = sqlite3_rollback_hook(connection, on_rollback, hooks_.get()) == hooks_.get();
  return commit_ours && rollback_ours;
}

::sqlite3* Sqlite3Session::connection() {
  ::sqlite3* connection = native();
  if (connection == nullptr) throw Error(ErrorCode::unsupported_database, "the session is not connected");
  return connection;
}

/// Returns a statement that stays prepared. If the caller has opened a new connection since then, the statements of the
/// old one are not used again.
Sqlite3Statement& Sqlite3Session::statement(Sqlite3Statement& slot, const std::string& sql) {
  ::sqlite3* db = connection();
  if (!pooled_ && db != configured_) {
    if (configured_ != nullptr) abandon_connection();
    configured_ = db;
  }
  if (!slot.prepared()) {
    const OwnSql own(is_own_sql_);
    slot.prepare(db, sql);
  }
  return slot;
}

/// Runs a statement that stays prepared. Returns whether it succeeded.
bool Sqlite3Session::try_run(Sqlite3Statement& slot, const std::string& sql) noexcept {
  try {
    return statement(slot, sql).try_run() == SQLITE_OK;
  } catch (...) {  // the statement could not be prepared
    return false;
  }
}

void Sqlite3Session::release_statements() noexcept {
  for (Sqlite3Statement* each :
       {&begin_, &insert_, &insert_with_lease_, &select_, &is_there_, &confirm_, &confirm_with_lease_, &commit_,
        &roll_back_, &set_guard_, &release_guard_, &return_to_guard_}) {
    each->finalize();
  }
  kept_.clear();
}

void Sqlite3Session::configure(const PoolOptions& options) {
  lock_timeout_ = options.lock_timeout;
  configured_ = connection();
  file_ = Sqlite3OpenFile::of(configured_);
  sqlite3_busy_timeout(configured_, static_cast<int>(lock_timeout_.count()));
  // WAL is a property of the file. An in-memory database refuses it. `doctor` reports the mode. SQLite does not wait
  // for other connections to the new file when it switches to WAL, so this loop tries again.
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
  // In WAL mode, EXTRA is the same as FULL. In journal mode DELETE, a transaction commits by the removal of the
  // journal, and only EXTRA makes this removal durable.
  for (const char* setting : {"PRAGMA synchronous = EXTRA", "PRAGMA foreign_keys = ON"}) {
    Sqlite3Statement(configured_, setting).run();
  }
  hooks_in_place(configured_);
  sqlite3_set_authorizer(configured_, on_prepare, this);
  begin_.prepare(configured_, sqlite3_begin);  // keeps the address of the connection in use, see `intact`
}

void Sqlite3Session::remember_settings() {
  begin_.prepare(configured_, sqlite3_begin);  // SQLite compiles it for the databases that are attached
  int enabled = 0;
  sqlite3_db_config(configured_, SQLITE_DBCONFIG_ENABLE_FKEY, -1, &enabled);
  foreign_keys_ = enabled != 0;
  const auto value = [&](const char* pragma) {
    const auto found = value_of(configured_, pragma);
    if (!found) throw_sqlite3_error(configured_, sqlite3_extended_errcode(configured_), "a setting cannot be read");
    return *found;
  };
  reads_committed_ = value("PRAGMA read_uncommitted") == 0;
  lock_timeout_ = std::chrono::milliseconds(value("PRAGMA busy_timeout"));
  remembered_.clear();
  for (const char* pragma : {"PRAGMA synchronous", "PRAGMA query_only"}) {
    remembered_.emplace_back(pragma, value(pragma));
  }
}

void Sqlite3Session::use_schema(const std::string& /*always main*/) { dialect_ = make_sqlite3_dialect(); }

std::vector<Problem> Sqlite3Session::unsafe_settings() {
  // A handler has closed a caller's session. At the next delivery the session may be open again, so this error must not
  // stop the consumer.
  if (native() == nullptr) throw_database_error(sqlite3_name, nullptr, "", "txinbox: the session is closed");
  Sqlite3Statement mode(native(), "PRAGMA main.journal_mode");
  if (!mode.fetch() || mode.text(0) != "off") return {};
  return {{ErrorCode::unsafe_connection,
           {Severity::error, "journal_mode", "off: SQLite cannot roll back without a journal",
            "PRAGMA journal_mode = WAL"}}};
}

bool Sqlite3Session::reset() noexcept {
  if (!intact()) return false;
  if (sqlite3_get_autocommit(configured_) == 0 && !try_sqlite3_exec(configured_, "ROLLBACK")) return false;
  // A handler may have left a write statement unfinished. Such a statement would make every later commit fail.
  for (sqlite3_stmt* each = nullptr; (each = sqlite3_next_stmt(configured_, each)) != nullptr;) {
    if (sqlite3_stmt_busy(each) != 0) sqlite3_reset(each);
  }
  restore();
  // An in-memory database exists only as long as its connection.
  const bool may_close = has_file(configured_);
  if (may_close && (broken_ || has_trigger_of_its_own(configured_))) return false;
  for (const auto& [pragma, value] : remembered_) {
    // Set the pragma only if it differs, because a change makes SQLite prepare all statements again.
    const auto now = value_of(configured_, pragma);
    if (!now) return !may_close;
    if (*now != value && !try_sqlite3_exec(configured_, pragma + " = " + std::to_string(value))) return false;
  }
  return true;
}

/// Ends the guard, and restores what a handler may have changed. It does no I/O.
void Sqlite3Session::restore() noexcept {
  *hooks_ = {};
  if (!pooled_) return;
  hooks_in_place(configured_);
  sqlite3_busy_timeout(configured_, static_cast<int>(lock_timeout_.count()));
  sqlite3_db_config(configured_, SQLITE_DBCONFIG_ENABLE_FKEY, foreign_keys_ ? 1 : 0, nullptr);
}

/// If the handler has opened a new connection, the new connection has another address: SQLite does not free the old
/// connection while our statements are prepared on it.
bool Sqlite3Session::intact() noexcept {
  ::sqlite3* now = native();
  if (now == configured_ || configured_ == nullptr) return now != nullptr;
  abandon_connection();
  return !pooled_ && now != nullptr;
}

/// Closes a connection that the handler wanted to close. SOCI could not close it, because our statements were prepared
/// on it. They are finalized last: with the last statement on it, SQLite frees a connection that another consumer has
/// closed in the same way.
void Sqlite3Session::abandon_connection() noexcept {
  if (pooled_ && !begin_.prepared()) return;  // it was closed before
  if (pooled_) remove_hooks();
  try_sqlite3_exec(configured_, "ROLLBACK");  // releases the locks even if the handler has statements on it
  sqlite3_close_v2(configured_);
  release_statements();
  if (!pooled_) configured_ = nullptr;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
