#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <sqlite3.h>

#include <txinbox/error.hpp>

#include "backend/database_error.hpp"
#include "backend/registry.hpp"
#include "backend/session.hpp"
#include "orders/scripted_database.hpp"

namespace txinbox::test {

/// The twists that a statement, a COMMIT and a call that only needs the connection can have.
inline constexpr std::array all_sql_twists = {SqlTwist::busy,       SqlTwist::deadlock,     SqlTwist::full,
                                              SqlTwist::read_only,  SqlTwist::lose_request, SqlTwist::lose_reply,
                                              SqlTwist::commit_late};
inline constexpr std::span of_commit(all_sql_twists);
inline constexpr std::span of_statement = of_commit.first(6);
inline constexpr std::span of_connection = of_statement.last(2);

inline bool is_open(::sqlite3* connection) noexcept { return sqlite3_get_autocommit(connection) == 0; }

inline void try_run(::sqlite3* connection, const std::string& sql) noexcept {
  sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, nullptr);
}

/// The error of a server that has become a replica. SQLite has none, so it is MariaDB's.
struct ReplicaError final : std::runtime_error, DatabaseError {
  ReplicaError() : runtime_error("txinbox: the test makes the server a replica"), DatabaseError("mysql", "1290") {}
  const char* what() const noexcept override { return runtime_error::what(); }
};

/// A session of SQLite with its protected functions.
struct OpenSession : backend::Session {
  static std::optional<backend::ClaimedRow> find_committed_of(backend::Session& session,
                                                              const backend::ClaimRequest& row) {
    return (session.*&OpenSession::find_committed)(row);
  }
};

/// A pool's session. It passes each call on to a session of SQLite, and plays the script.
class ScriptedSession final : public backend::Session {
 public:
  ScriptedSession(ScriptedDatabase& database, backend::ConnectionPtr connection)
      : backend::Session(
            database.rule() == CommitRule::refuses ? backend::InitialState::consumed : backend::InitialState::torn,
            connection),
        database_(database),
        real_(database.real_.attach(connection, database.rule() == CommitRule::refuses ? backend::Ownership::pool
                                                                                       : backend::Ownership::caller)) {
    if (database.rule() == CommitRule::watches) sqlite3_commit_hook(native(), on_commit, this);
    database_.sessions_[native()] = this;
  }
  ~ScriptedSession() override { database_.sessions_.erase(native()); }

  /// A new script begins: the server is a primary again, and the last keys were no duplicates.
  void start() noexcept {
    record_claim_result(false);
    read_only_ = false;
  }

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
  std::vector<backend::Problem> unsafe_settings() override { return {}; }
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
  backend::ClaimReply claim(const backend::ClaimRequest& row) override {
    return call([&] { return real_->claim(row); });
  }
  bool reads_before_insert() const noexcept override { return real_->reads_before_insert(); }
  bool guard_likely_intact() noexcept override { return !lost_ && real_->guard_likely_intact(); }
  bool confirm(std::span<const backend::ClaimToCommit> claims) override {
    return call([&] { return real_->confirm(claims); });
  }
  backend::CommitStatus commit(std::span<const backend::ClaimToCommit> claims,
                               std::span<const std::string> writes) override {
    refuse_lost();
    database_.end_late_commits();
    const auto twist = database_.next(of_commit);
    may_have_committed_ = !read_only_ && (!twist || *twist >= SqlTwist::lose_request);
    if (twist == SqlTwist::commit_late && !read_only_) {
      commit_late(claims, writes);
      fail(lost_code);
    }
    return play(
        twist,
        [&] {
          const Ours ours(*this);
          return real_->commit(claims, writes);
        },
        Needs::primary);
  }
  bool may_have_committed() const noexcept override { return may_have_committed_; }
  bool refused_commit() const noexcept override { return real_->refused_commit(); }
  bool may_have_foreign_commit() const noexcept override { return foreign_commits_ > 0; }
  std::optional<std::string> code_of_handler_error() noexcept override { return last_error_; }
  backend::RollbackStatus roll_back() noexcept override {
    if (!survives()) return backend::RollbackStatus::failed;
    return real_->roll_back();
  }
  bool verify_guard() override {
    return call([&] { return real_->verify_guard(); });
  }
  void savepoint() override {
    call([&] { real_->savepoint(); });
  }
  bool release_savepoint(const backend::ClaimToCommit* claim) override {
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
  bool try_run_kept(const backend::KeptStatement&, std::span<const backend::Parameter>) override { return false; }
  std::size_t change(const std::string& sql) override {
    return call([&] {
      Ours ours(*this);
      return real_->change(sql);
    });
  }
  backend::Changed change_kept(const backend::KeptStatement& statement,
                               std::span<const backend::Parameter> values) override {
    return call([&] {
      Ours ours(*this);
      return real_->change_kept(statement, values);
    });
  }
  std::vector<backend::Row> read(const std::string& sql, std::size_t columns) override {
    return look([&] { return real_->read(sql, columns); });
  }
  std::vector<backend::Row> read_kept(const backend::KeptStatement& statement,
                                      std::span<const backend::Parameter> values, std::size_t columns) override {
    return look([&] { return real_->read_kept(statement, values, columns); });
  }
  backend::PurgeReply purge_some(const backend::PurgeBatch&) override { throw std::logic_error("no test purges here"); }

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

  std::optional<backend::ClaimedRow> find_committed(const backend::ClaimRequest& row) override {
    return look([&] { return OpenSession::find_committed_of(*real_, row); });
  }

  ::sqlite3* native() const noexcept { return native_handle<::sqlite3>(); }

  [[noreturn]] void fail(int code) {
    last_error_ = std::to_string(code);
    backend::throw_database_error(database_.name(), native(), *last_error_, "txinbox: the test makes this call fail");
  }

  [[noreturn]] void fail_as_replica() {
    read_only_ = true;
    if (backend::find_database("mysql") == nullptr) fail(lost_code);  // this build has only SQLite
    last_error_ = std::to_string(lost_code);  // for a handler that wraps the error: it is one of this connection, too
    throw ReplicaError();
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
    return play(database_.next(of_statement), step, Needs::primary);
  }

  /// A read does not wait for a late commit.
  template <class Step>
  std::invoke_result_t<Step> look(const Step& step) {
    refuse_lost();
    return play(database_.next(of_statement), step, Needs::any);
  }

  enum class Needs { any, primary };  ///< The server that a call needs.

  template <class Step>
  std::invoke_result_t<Step> play(std::optional<SqlTwist> twist, const Step& step, Needs needs) {
    if (!twist) {
      if (read_only_ && needs == Needs::primary) fail_as_replica();
      return step();
    }
    switch (*twist) {
      case SqlTwist::busy:
        fail(busy_code);
      case SqlTwist::deadlock:
        // PostgreSQL, which watches, keeps the transaction open.
        if (is_open(native()) && database_.rule() != CommitRule::watches) try_run(native(), "ROLLBACK");
        fail(busy_code);
      case SqlTwist::full:
        fail(full_code);
      case SqlTwist::read_only:
        fail_as_replica();
      case SqlTwist::lose_reply: {
        const int seen = foreign_commits_;
        try {
          if (!read_only_ || needs == Needs::any) (void)step();
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
  void commit_late(std::span<const backend::ClaimToCommit> claims, std::span<const std::string> writes) {
    lost_ = true;
    if (database_.rule() == CommitRule::watches) sqlite3_commit_hook(native(), nullptr, nullptr);
    const bool ours = real_->verify_guard() && real_->confirm(claims);
    for (const std::string& sql : writes) real_->execute(sql);
    std::shared_ptr<backend::Session> session =
        std::exchange(real_, database_.real_.attach(connection_ptr(), backend::Ownership::caller));
    database_.late_commits_.emplace_back([session, ours, connection = connection_ptr()] {
      if (ours) (void)session->commit({}, {});
      (void)session->roll_back();
    });
  }

  ScriptedDatabase& database_;
  std::unique_ptr<backend::Session> real_;
  bool lost_ = false;
  bool read_only_ = false;
  bool may_have_committed_ = false;
  bool is_ours_ = false;
  int foreign_commits_ = 0;
  std::optional<std::string> last_error_;
};

}  // namespace txinbox::test
