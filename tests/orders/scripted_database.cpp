#include "orders/scripted_database.hpp"

#include <stdlib.h>

#include <algorithm>
#include <stdexcept>
#include <system_error>
#include <type_traits>

#include <fmt/format.h>
#include <txinbox/native.hpp>
#include <txinbox/schema.hpp>

#include "backend/database_error.hpp"
#include "backend/registry.hpp"
#include "types/enum_names.hpp"

namespace txinbox::test {

using namespace backend;

namespace {

constexpr detail::EnumNames<SqlTwist, SqlTwist::commit_late> twist_names("busy", "deadlock", "full", "lose_request",
                                                                         "lose_reply", "commit_late");
constexpr detail::EnumNames<CommitRule, CommitRule::commits> rule_names("refuses", "watches", "commits");

const std::vector<SqlTwist> of_statement = {SqlTwist::busy, SqlTwist::deadlock, SqlTwist::full, SqlTwist::lose_request,
                                            SqlTwist::lose_reply};
const std::vector<SqlTwist> of_commit = {SqlTwist::busy,         SqlTwist::deadlock,   SqlTwist::full,
                                         SqlTwist::lose_request, SqlTwist::lose_reply, SqlTwist::commit_late};
const std::vector<SqlTwist> of_connection = {SqlTwist::lose_request, SqlTwist::lose_reply};

bool is_open(::sqlite3* connection) noexcept { return sqlite3_get_autocommit(connection) == 0; }

void try_run(::sqlite3* connection, const std::string& sql) noexcept {
  sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, nullptr);
}

/// A connection that the database owns.
class ScriptedConnection final : public NativeConnection {
 public:
  ScriptedConnection(const Database& database, ::sqlite3* handle) noexcept
      : NativeConnection(database), handle_(handle) {}
  ~ScriptedConnection() override { sqlite3_close_v2(handle_); }
  void* handle() const noexcept override { return handle_; }

 private:
  ::sqlite3* const handle_;
};

/// A session of SQLite with its protected functions.
struct OpenSession : Session {
  static std::optional<ClaimedRow> find_committed_of(Session& session, const ClaimRequest& row) {
    return (session.*&OpenSession::find_committed)(row);
  }
};

}  // namespace

std::string_view to_string(SqlTwist twist) noexcept { return twist_names[twist]; }
std::string_view to_string(CommitRule rule) noexcept { return rule_names[rule]; }

/// A pool's session. It passes each call on to a session of SQLite, and plays the script.
class ScriptedSession final : public Session {
 public:
  ScriptedSession(ScriptedDatabase& database, ConnectionPtr connection)
      : Session(database.rule() == CommitRule::refuses ? InitialState::consumed : InitialState::torn, connection),
        database_(database),
        real_(database.real_.attach(connection,
                                    database.rule() == CommitRule::refuses ? Ownership::pool : Ownership::caller)) {
    if (database.rule() == CommitRule::watches) sqlite3_commit_hook(native(), on_commit, this);
    database_.sessions_[native()] = this;
  }
  ~ScriptedSession() override { database_.sessions_.erase(native()); }

  /// Runs a handler's statement.
  void run_of_handler(const std::string& sql) {
    last_error_.reset();
    call([&] {
      // Outside a transaction, such a server has autocommit off, or the session is read-only.
      const bool begins = sql == "BEGIN" || is_open(native()) || database_.rule() == CommitRule::refuses;
      if (!begins) try_run(native(), "BEGIN");
      // On PostgreSQL, the tags of the two statements are the same.
      if (database_.rule() == CommitRule::watches && sql.starts_with("ROLLBACK TO")) ++foreign_commits_;
      if (sqlite3_exec(native(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) return;
      fail(sqlite3_extended_errcode(native()));
    });
  }

  void configure(const PoolOptions& options) override {
    if (database_.rule() == CommitRule::refuses) real_->configure(options);
    try_run(native(), "PRAGMA synchronous = OFF");
  }
  void remember_settings() override {
    if (database_.rule() == CommitRule::refuses) real_->remember_settings();
  }
  void use_schema(const std::string& schema) override {
    real_->use_schema(schema);
    dialect_ = database_.real_.dialect(schema);
  }
  std::vector<Problem> unsafe_settings() override { return {}; }
  bool reset() noexcept override {
    if (lost_) return false;
    if (database_.rule() == CommitRule::refuses) return real_->reset();
    if (is_open(native())) try_run(native(), "ROLLBACK");
    return true;
  }
  bool intact() noexcept override { return !lost_ && real_->intact(); }
  bool in_transaction() override { return real_->in_transaction(); }

  void begin() override {
    foreign_commits_ = 0;
    call([&] { real_->begin(); });
  }
  ClaimReply claim(const ClaimRequest& row) override {
    return call([&] { return real_->claim(row); });
  }
  bool reads_before_insert() const noexcept override { return real_->reads_before_insert(); }
  bool guard_likely_intact() noexcept override { return !lost_ && real_->guard_likely_intact(); }
  bool confirm(std::span<const ClosingClaim> claims) override {
    return call([&] { return real_->confirm(claims); });
  }
  CommitStatus commit(std::span<const ClosingClaim> claims, std::span<const std::string> writes) override {
    refuse_lost();
    database_.end_late_commits();
    const auto twist = database_.next(of_commit);
    may_have_committed_ = twist != SqlTwist::busy && twist != SqlTwist::deadlock && twist != SqlTwist::full;
    if (twist == SqlTwist::commit_late) {
      commit_late(claims, writes);
      fail(lost_code);
    }
    return play(twist, [&] {
      const Ours ours(*this);
      return real_->commit(claims, writes);
    });
  }
  bool may_have_committed() const noexcept override { return may_have_committed_; }
  bool refused_commit() const noexcept override { return real_->refused_commit(); }
  bool may_have_foreign_commit() const noexcept override { return foreign_commits_ > 0; }
  std::optional<std::string> code_of_handler_error() noexcept override { return last_error_; }
  RollbackStatus roll_back() noexcept override {
    if (!survives()) return RollbackStatus::failed;
    return real_->roll_back();
  }
  bool verify_guard() override {
    return call([&] { return real_->verify_guard(); });
  }
  void savepoint() override {
    call([&] { real_->savepoint(); });
  }
  bool release_savepoint(const ClosingClaim* claim) override {
    return call([&] { return real_->release_savepoint(claim); });
  }
  bool rollback_to_savepoint() noexcept override { return survives() && real_->rollback_to_savepoint(); }
  bool wait_until_durable(std::string_view, std::string_view) override {
    return call([] { return true; });
  }
  void catch_up() override {
    call([] {});
  }

  std::size_t execute(const std::string& sql) override {
    return call([&] { return real_->execute(sql); });
  }
  bool try_run_kept(const KeptStatement&, std::span<const Parameter>) override { return false; }
  std::size_t change(const std::string& sql) override {
    return call([&] {
      Ours ours(*this);
      return real_->change(sql);
    });
  }
  std::optional<std::int64_t> change_returning(const std::string& sql) override {
    return call([&] {
      Ours ours(*this);
      return real_->change_returning(sql);
    });
  }
  std::vector<Row> read(const std::string& sql, std::size_t columns) override {
    return look([&] { return real_->read(sql, columns); });
  }
  PurgeReply purge_some(const PurgeBatch&) override { throw std::logic_error("no test purges here"); }

 private:
  static constexpr int busy_code = SQLITE_BUSY, full_code = SQLITE_FULL, lost_code = SQLITE_CANTOPEN;

  /// While it exists, a commit on the connection is ours.
  struct Ours {
    explicit Ours(ScriptedSession& session) : session_(session) { session_.is_ours_ = true; }
    ~Ours() { session_.is_ours_ = false; }
    Ours(const Ours&) = delete;
    Ours& operator=(const Ours&) = delete;

   private:
    ScriptedSession& session_;
  };

  static int on_commit(void* session) {
    auto& self = *static_cast<ScriptedSession*>(session);
    if (!self.is_ours_) ++self.foreign_commits_;
    return 0;
  }

  std::optional<ClaimedRow> find_committed(const ClaimRequest& row) override {
    return look([&] { return OpenSession::find_committed_of(*real_, row); });
  }

  ::sqlite3* native() const noexcept { return native_handle<::sqlite3>(); }

  [[noreturn]] void fail(int code) {
    last_error_ = std::to_string(code);
    throw_database_error(database_.name(), native(), *last_error_, "txinbox: the test makes this call fail");
  }

  void refuse_lost() {
    if (lost_) fail(lost_code);
  }

  /// The server ends the session.
  void end() noexcept {
    lost_ = true;
    (void)real_->roll_back();
    if (is_open(native())) try_run(native(), "ROLLBACK");
  }

  /// Whether the connection is still there after this call, which cannot throw.
  bool survives() noexcept {
    if (!lost_ && database_.next(of_connection)) end();
    return !lost_;
  }

  template <class Step>
  std::invoke_result_t<Step> call(const Step& step) {
    refuse_lost();
    database_.end_late_commits();
    return play(database_.next(of_statement), step);
  }

  /// A read does not wait for a late commit.
  template <class Step>
  std::invoke_result_t<Step> look(const Step& step) {
    refuse_lost();
    return play(database_.next(of_statement), step);
  }

  template <class Step>
  std::invoke_result_t<Step> play(std::optional<SqlTwist> twist, const Step& step) {
    if (!twist) return step();
    switch (*twist) {
      case SqlTwist::busy:
        fail(busy_code);
      case SqlTwist::deadlock:
        // PostgreSQL, which watches, keeps the transaction open.
        if (is_open(native()) && database_.rule() != CommitRule::watches) try_run(native(), "ROLLBACK");
        fail(busy_code);
      case SqlTwist::full:
        fail(full_code);
      case SqlTwist::lose_reply: {
        const int seen = foreign_commits_;
        try {
          (void)step();
        } catch (const DatabaseError&) {  // the reply is lost, too
        }
        foreign_commits_ = seen;
        [[fallthrough]];
      }
      default:
        end();
        fail(lost_code);
    }
  }

  /// The statements of the commit run now, because they refer to strings of the caller. COMMIT runs later.
  void commit_late(std::span<const ClosingClaim> claims, std::span<const std::string> writes) {
    lost_ = true;
    if (database_.rule() == CommitRule::watches) sqlite3_commit_hook(native(), nullptr, nullptr);
    const bool ours = real_->verify_guard() && real_->confirm(claims);
    for (const std::string& sql : writes) real_->execute(sql);
    std::shared_ptr<Session> session =
        std::exchange(real_, database_.real_.attach(connection_ptr(), Ownership::caller));
    database_.late_commits_.emplace_back([session, ours, connection = connection_ptr()] {
      if (ours) (void)session->commit({}, {});
      (void)session->roll_back();
    });
  }

  ScriptedDatabase& database_;
  std::unique_ptr<Session> real_;
  bool lost_ = false;
  bool may_have_committed_ = false;
  bool is_ours_ = false;
  int foreign_commits_ = 0;
  std::optional<std::string> last_error_;
};

/// Opens the connections of a pool.
class ScriptedConnector final : public detail::Connector {
 public:
  explicit ScriptedConnector(ScriptedDatabase& database) : database_(database) {}

  ConnectionPtr connect() const override {
    if (database_.next(of_connection)) {
      throw_database_error(database_.name(), database_.own_, std::to_string(SQLITE_CANTOPEN),
                           "txinbox: the test refuses this connection");
    }
    return std::make_shared<ScriptedConnection>(database_, database_.open());
  }
  std::optional<std::string> refusal(const std::string&) const override { return std::nullopt; }

 private:
  ScriptedDatabase& database_;
};

ScriptedDatabase::ScriptedDatabase(CommitRule rule)
    : rule_(rule),
      real_(database_named("sqlite3")),
      folder_([] {
        std::string name = (std::filesystem::temp_directory_path() / "txinbox-scripted-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder");
        return name;
      }()),
      own_(open()) {
  change("PRAGMA journal_mode = WAL");
  change("PRAGMA synchronous = OFF");
  migrate(own_);
  change("CREATE TABLE effect (business_key TEXT NOT NULL)");
}

ScriptedDatabase::~ScriptedDatabase() {
  late_commits_.clear();
  sqlite3_close_v2(own_);
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

::sqlite3* ScriptedDatabase::open() const {
  ::sqlite3* opened = nullptr;
  if (sqlite3_open((folder_ / "inbox.db").c_str(), &opened) != SQLITE_OK) {
    throw std::runtime_error("the database cannot be opened");
  }
  return opened;
}

std::shared_ptr<detail::PoolState> ScriptedDatabase::open_pool() {
  using namespace std::chrono_literals;
  return detail::PoolState::open(std::make_unique<ScriptedConnector>(*this),
                                 {.connections = 1, .acquire_timeout = 1s, .lock_timeout = 1s});
}

/// The checks of a connection attach a caller's session. They make no calls.
std::unique_ptr<Session> ScriptedDatabase::attach(ConnectionPtr connection, Ownership ownership) const {
  if (ownership == Ownership::caller) return real_.attach(std::move(connection), ownership);
  return std::make_unique<ScriptedSession>(const_cast<ScriptedDatabase&>(*this), std::move(connection));
}

void ScriptedDatabase::start(std::vector<SqlTwistAt> script) {
  for (const char* table : {"txinbox_consumed_message", "txinbox_failed_message", "txinbox_conflicting_message",
                            "txinbox_outbox_message", "effect"}) {
    change(std::string("DELETE FROM ") + table);
  }
  for (const auto& [connection, session] : sessions_) session->record_claim_result(false);
  script_ = std::move(script);
  calls_.clear();
  running_ = true;
}

std::optional<SqlTwist> ScriptedDatabase::next(std::vector<SqlTwist> possible) {
  if (!running_) return std::nullopt;
  const std::size_t call = calls_.size();
  calls_.push_back(std::move(possible));
  const auto found = std::ranges::find(script_, call, &SqlTwistAt::call);
  if (found == script_.end()) return std::nullopt;
  if (std::ranges::find(calls_.back(), found->what) == calls_.back().end()) {
    throw std::logic_error(fmt::format("call {} cannot have {}", call, to_string(found->what)));
  }
  return found->what;
}

void ScriptedDatabase::end_late_commits() {
  for (const auto& commit : std::exchange(late_commits_, {})) commit();
}

void ScriptedDatabase::run_of_handler(::sqlite3* connection, const std::string& sql) {
  sessions_.at(connection)->run_of_handler(sql);
}

std::int64_t ScriptedDatabase::value(const std::string& sql) {
  end_late_commits();
  std::int64_t value = -1;
  const auto note = [](void* to, int, char** columns, char**) {
    if (columns[0] != nullptr) *static_cast<std::int64_t*>(to) = std::stoll(columns[0]);
    return 0;
  };
  if (sqlite3_exec(own_, sql.c_str(), note, &value, nullptr) != SQLITE_OK) {
    throw std::runtime_error("the test's query failed: " + std::string(sqlite3_errmsg(own_)));
  }
  return value;
}

void ScriptedDatabase::change(const std::string& sql) {
  end_late_commits();
  if (sqlite3_exec(own_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    throw std::runtime_error("the test's statement failed: " + std::string(sqlite3_errmsg(own_)));
  }
}

}  // namespace txinbox::test
