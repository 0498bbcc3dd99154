#include "sim/database/server.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "sim/database/literals.hpp"
#include "sim/database/sqlite_values.hpp"

namespace txinbox::sim {

namespace {

using namespace std::chrono_literals;

std::map<::sqlite3*, ServerSession*>& sessions() {
  static std::map<::sqlite3*, ServerSession*> all;
  return all;
}

/// How long a lost connection's transaction stays open at the server.
constexpr SimTime longest_end = 50ms;

}  // namespace

ServerSession::ServerSession(Server& server, std::shared_ptr<Process> client)
    : server_(server),
      client_(std::move(client)),
      tables_(server.take_tables()),
      is_read_only_(client_ != nullptr && threads().now() < server.leads_to_standby_until_) {
  server_.sessions_.push_back(this);
  sessions()[tables_->handle] = this;
}

ServerSession::~ServerSession() {
  end();
  std::erase(server_.sessions_, this);
  sessions().erase(tables_->handle);
  server_.unused_tables_.push_back(std::move(tables_));
}

ServerSession& ServerSession::of(::sqlite3* connection) { return *sessions().at(connection); }

void ServerSession::end() noexcept {
  is_lost_ = true;
  roll_back();
}

void ServerSession::lose(std::string_view what) {
  throw SimulatedError(server_.personality(), server_.personality().error.lost, what);
}

void ServerSession::call(const std::function<void()>& work, Request request) {
  auto& threads = *Threads::instance();
  const auto wait = [&] {
    threads.sleep_for(1us + SimTime(threads.random()() % static_cast<std::uint64_t>(server_.faults.slowest.count())));
  };
  threads.kill_point();
  may_have_committed = false;
  if (is_lost_) lose("lost connection");
  is_in_call_ = true;
  const std::shared_ptr<void> ends(nullptr, [this](void*) { is_in_call_ = false; });
  wait();
  while (server_.has_pooler && !has_transaction() && !is_lost_ && !server_.is_up()) threads.sleep_for(10ms);
  if (is_lost_) lose("connection that the server has ended");
  if (!server_.is_up() || threads.happens(server_.faults.lose_request)) {
    end();
    lose("lost request");
  }
  may_have_committed = request == Request::commit;
  commits_late_ = request == Request::commit && threads.happens(server_.faults.commit_late);
  std::optional<std::string> code;
  const std::size_t changes = has_transaction() ? Store::changes(*view().transaction) : 0;
  try {
    check_faults(request);
    work();
  } catch (const ServerError& error) {
    code = error.what();
    fail_statement(error, changes, request);
  }
  if (std::exchange(commits_late_, false)) end();
  if (is_lost_) lose("connection that the server has ended");
  if (threads.happens(server_.faults.lose_reply)) {
    end();
    lose("lost reply");
  }
  wait();
  if (is_lost_) lose("connection that the server has ended");
  if (code) throw SimulatedError(server_.personality(), *code, "error of the server");
}

/// A ROLLBACK always succeeds.
void ServerSession::check_faults(Request request) const {
  if (request == Request::rollback || (has_transaction() && view().transaction->is_aborted)) return;
  const Personality& personality = server_.personality();
  if (threads().happens(server_.faults.refuse)) throw ServerError(personality.error.full);
  const bool is_commit = request == Request::commit;
  const bool can_conflict = is_commit || (has_transaction() && !personality.conflicts_only_at_commit);
  if (can_conflict && !personality.error.conflict.empty() && threads().happens(server_.faults.conflict)) {
    throw ServerError(personality.error.conflict);
  }
}

/// Whether this connection, or the server, is read-only now. A file is never.
bool ServerSession::refuses_changes() const {
  if (server_.personality().error.read_only.empty()) return false;
  return is_read_only_ || threads().now() < server_.read_only_until_;
}

void ServerSession::fail_statement(const ServerError& error, std::size_t changes, Request request) {
  if (!has_transaction()) return;
  const Personality& personality = server_.personality();
  const bool is_conflict = error.what() == personality.error.conflict;
  const bool loses = is_conflict || error.what() == personality.error.deadlock;
  if ((request == Request::commit && is_conflict) || (loses && personality.deadlock_rolls_back)) return roll_back();
  server_.store().undo_since(*view().transaction, changes);
  if (personality.error_aborts_transaction) view().transaction->is_aborted = true;
}

void ServerSession::begin() {
  roll_back();
  transaction_ = server_.store().begin(server_.lock_timeout_);
  view().transaction = transaction_.get();
}

void ServerSession::commit() {
  if (!has_transaction()) return;
  if (view().transaction->is_aborted) return roll_back();  // PostgreSQL answers ROLLBACK, and reports no error
  if (commits_late_) return commit_late();
  const std::uint64_t commit = server_.store().commit(*view().transaction);
  view().transaction = nullptr;
  transaction_.reset();
  auto& threads = *Threads::instance();
  if (server_.personality().shows_commits_early && client_ != nullptr) {
    threads.sleep_for(SimTime(threads.random()() % static_cast<std::uint64_t>(server_.faults.slowest.count())));
    if (is_lost_) return;
  }
  server_.store().flush(commit);
}

void ServerSession::roll_back() noexcept {
  if (!has_transaction()) return;
  server_.store().roll_back(*view().transaction);
  view().transaction = nullptr;
  ended_.push_back(std::move(transaction_));
}

/// The server does COMMIT when the client is already gone.
void ServerSession::commit_late() {
  view().transaction = nullptr;
  const auto commit = [&server = server_, restarts = server_.restarts_, transaction = std::move(transaction_)] {
    Threads::instance()->sleep_for(SimTime(Threads::instance()->random()() % longest_end.count()));
    if (server.restarts_ == restarts) server.store().flush(server.store().commit(*transaction));
  };
  (void)Threads::instance()->start_process("late commit", commit);
}

void ServerSession::refuse_aborted() const {
  if (has_transaction() && view().transaction->is_aborted) throw ServerError(server_.personality().error.aborted);
}

void ServerSession::set_savepoint(const std::string& name) {
  refuse_aborted();
  if (has_transaction()) server_.store().set_savepoint(*view().transaction, name);
}

bool ServerSession::release_savepoint(const std::string& name) {
  return is_usable() && server_.store().release_savepoint(*view().transaction, name);
}

bool ServerSession::roll_back_to_savepoint(const std::string& name) {
  return has_transaction() && server_.store().roll_back_to_savepoint(*view().transaction, name);
}

void ServerSession::run_once(const std::string& sql, const Values& parameters, std::vector<Values>* rows) {
  sqlite3_stmt*& statement = tables_->statements[sql];
  if (statement == nullptr && sqlite3_prepare_v2(tables_->handle, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
    throw std::logic_error("the simulator cannot run " + sql + ": " + sqlite3_errmsg(tables_->handle));
  }
  bind(statement, parameters);
  view().error = nullptr;
  int result = SQLITE_OK;
  while ((result = sqlite3_step(statement)) == SQLITE_ROW) {
    if (rows == nullptr) continue;
    Values& row = rows->emplace_back();
    for (int i = 0; i < sqlite3_column_count(statement); ++i) row.push_back(column_of(statement, i));
  }
  sqlite3_reset(statement);
  if (view().error) std::rethrow_exception(std::exchange(view().error, nullptr));
  if (result != SQLITE_DONE)
    throw std::logic_error("the simulator cannot run " + sql + ": " + sqlite3_errmsg(tables_->handle));
}

std::size_t ServerSession::run(const std::string& sql, const Values& parameters, std::vector<Values>* rows) {
  if (parameters.empty()) {
    const ParameterizedSql parameterized = with_parameters(sql);
    if (!parameterized.parameters.empty()) return run(parameterized.sql, parameterized.parameters, rows);
  }
  refuse_aborted();
  const bool is_alone = !has_transaction();
  const bool is_read = sql.starts_with("SELECT");
  if (!is_read && refuses_changes()) throw ServerError(server_.personality().error.read_only);
  if (is_alone && !is_read) begin();
  const std::size_t changes = has_transaction() ? Store::changes(*view().transaction) : 0;
  while (true) {
    view().changed = 0;
    try {
      run_once(sql, parameters, rows);
      if (is_alone && !is_read) commit();
      return view().changed;
    } catch (const RowChanged&) {
      if (is_lost_) return 0;  // the server has ended the session while it waited
      server_.store().undo_since(*view().transaction, changes);
    } catch (const ServerError&) {
      if (is_alone) roll_back();
      throw;
    }
  }
}

/// A handler's COMMIT.
void ServerSession::commit_of_client() {
  if (is_in_guarded_transaction() && server_.personality().refuses_commit_of_handler) {
    has_refused_commit = true;
    roll_back();
    throw ServerError(server_.personality().error.refused);
  }
  if (has_transaction()) ++foreign_commits;
  commit();
}

void ServerSession::begin_of_client() {
  if (!has_transaction()) return begin();
  switch (server_.personality().nested_begin) {
    case NestedBegin::fails:
      throw ServerError(server_.personality().error.nested);
    case NestedBegin::is_ignored:
      return refuse_aborted();
    case NestedBegin::commits:
      ++foreign_commits;
      commit();
      return begin();
  }
}

void ServerSession::change_of_client(const std::string& sql) {
  const bool is_alone = !has_transaction();
  const Personality& personality = server_.personality();
  if (is_in_handler && !is_in_guarded_transaction() && !personality.begins_by_itself) {
    if (personality.error.late == personality.error.refused) has_refused_commit = true;
    throw ServerError(personality.error.late);
  }
  if (is_alone && is_in_handler) begin();
  (void)run(sql);
  if (is_alone && !is_in_handler) ++foreign_commits;
}

void ServerSession::execute(const std::string& sql) {
  const auto name = [&] { return sql.substr(sql.rfind(' ') + 1); };
  const std::string_view text = sql;
  const bool commits = text == "COMMIT" || (text == "BEGIN" && has_transaction() &&
                                            server_.personality().nested_begin == NestedBegin::commits);
  call(
      [&] {
        if (text == "BEGIN") return begin_of_client();
        if (text == "COMMIT") return commit_of_client();
        if (text == "ROLLBACK") return roll_back();
        if (text.starts_with("SAVEPOINT ")) return set_savepoint(name());
        if (text.starts_with("ROLLBACK TO ")) {
          (void)roll_back_to_savepoint(name());
          return;
        }
        change_of_client(sql);
      },
      commits                        ? Request::commit
      : text.starts_with("ROLLBACK") ? Request::rollback
                                     : Request::statement);
}

void ServerSession::run_into_deadlock() {
  call([&] { throw ServerError(server_.personality().error.deadlock); });
}

}  // namespace txinbox::sim
