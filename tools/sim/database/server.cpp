#include "sim/database/server.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <random>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/format.h>

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

Server::Server(const Personality& personality, const Migrated& migrated)
    : migrated_(migrated), store_(personality, migrated_.tables) {
  for (const auto& [table, row] : migrated_.rows) store_.load(*store_.find_table(table), row);
  own_ = std::make_unique<ServerSession>(*this, nullptr);
}

Server::~Server() = default;

void Server::end_all_sessions(SimTime until) {
  down_until_ = until;
  ++restarts_;
  for (ServerSession* const each : sessions_) {
    if (each != own_.get()) each->end();
  }
}

void Server::restart(SimTime until) {
  end_all_sessions(until);
  store_.crash();
}

std::set<std::string> Server::fail_over(SimTime until, SimTime lost) {
  end_all_sessions(until);
  store_.crash();
  std::set<std::string> keys;
  for (const LostRow& each : store_.fail_over(Threads::instance()->now() - lost)) {
    if (each.table->definition().name == "effect") keys.insert(each.values.at(1).bytes);
  }
  return keys;
}

std::size_t Server::count_durable(std::string_view table, const Texts& texts) {
  Table& searched = *store_.find_table(table);
  const TableDefinition& definition = searched.definition();
  Values prefix;
  std::size_t place = 0;
  for (std::size_t i = 0; i < definition.indexes.size(); ++i) {
    const std::vector<std::size_t>& index = definition.indexes[i];
    const auto is_same = [&](const auto& text, std::size_t column) { return definition.columns[column] == text.first; };
    const auto common = std::ranges::mismatch(texts, index, is_same).in1 - texts.begin();
    if (static_cast<std::size_t>(common) <= prefix.size()) continue;
    place = i;
    prefix.clear();
    for (auto each = texts.begin(); each != texts.begin() + common; ++each) prefix.push_back(text_value(each->second));
  }
  if (prefix.empty()) throw std::logic_error(fmt::format("no index on {}", texts.front().first));
  const auto found = searched.find(place, prefix);
  return static_cast<std::size_t>(std::ranges::count_if(found, [&](std::int64_t row) {
    const Version& version = store_.durable_version(searched, row);
    return version && std::ranges::all_of(texts, [&](const auto& text) {
             const auto column = std::ranges::find(definition.columns, text.first) - definition.columns.begin();
             return version->at(static_cast<std::size_t>(column)).bytes == text.second;
           });
  }));
}

std::string Server::kill_any_session() {
  std::vector<ServerSession*> connected;
  std::ranges::copy_if(sessions_, std::back_inserter(connected),
                       [](const ServerSession* each) { return each->client_ != nullptr && !each->is_lost(); });
  if (connected.empty()) return {};
  ServerSession& killed = *connected[Threads::instance()->any_of(connected.size())];
  killed.end();
  return killed.client_->name();
}

void Server::end_sessions(const Process& process) noexcept {
  for (ServerSession* const each : sessions_) {
    if (each->client_.get() == &process) each->end();
  }
}

std::vector<Values> Server::query(const std::string& sql) {
  std::vector<Values> rows;
  own_->run(sql, {}, &rows);
  return rows;
}

TableConnection::TableConnection(Server& server) : view{.store = &server.store()} {
  if (sqlite3_open(":memory:", &handle) != SQLITE_OK) throw std::runtime_error("SQLite has no memory");
  // SQLite opens a file for each of its temporary tables otherwise.
  if (sqlite3_exec(handle, "PRAGMA temp_store = MEMORY", nullptr, nullptr, nullptr) != SQLITE_OK) {
    throw std::logic_error("SQLite does not keep temporary tables in memory");
  }
  add_virtual_tables(handle, view, server.tables());
}

TableConnection::~TableConnection() {
  for (const auto& [sql, statement] : statements) sqlite3_finalize(statement);
  sqlite3_close_v2(handle);
}

std::unique_ptr<TableConnection> Server::take_tables() {
  if (unused_tables_.empty()) return std::make_unique<TableConnection>(*this);
  auto tables = std::move(unused_tables_.back());
  unused_tables_.pop_back();
  return tables;
}

ServerSession::ServerSession(Server& server, std::shared_ptr<Process> client)
    : server_(server), client_(std::move(client)), tables_(server.take_tables()) {
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

void ServerSession::call(const std::function<void()>& work, bool is_commit) {
  auto& threads = *Threads::instance();
  const auto wait = [&] {
    threads.sleep_for(1us + SimTime(threads.random()() % static_cast<std::uint64_t>(server_.faults.slowest.count())));
  };
  threads.kill_point();
  may_have_committed = false;
  if (is_lost_) lose("lost connection");
  wait();
  if (is_lost_) lose("connection that the server has ended");
  if (!server_.is_up() || threads.happens(server_.faults.lose_request)) {
    end();
    lose("lost request");
  }
  may_have_committed = is_commit;
  commits_late_ = is_commit && threads.happens(server_.faults.commit_late);
  std::optional<std::string> code;
  const std::size_t changes = has_transaction() ? Store::changes(*view().transaction) : 0;
  try {
    if (threads.happens(server_.faults.refuse)) throw ServerError(server_.personality().error.full);
    work();
  } catch (const ServerError& error) {
    code = error.what();
    fail_statement(error, changes);
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

void ServerSession::fail_statement(const ServerError& error, std::size_t changes) {
  if (!has_transaction()) return;
  const Personality& personality = server_.personality();
  if (error.what() == personality.error.deadlock && personality.deadlock_rolls_back) return roll_back();
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

void ServerSession::execute(const std::string& sql) {
  const auto name = [&] { return sql.substr(sql.rfind(' ') + 1); };
  const std::string_view text = sql;
  call(
      [&] {
        if (text == "BEGIN") return begin();
        if (text == "COMMIT") {
          const bool is_ours = has_transaction() && view().transaction->is_guarded;
          if (is_ours && server_.personality().refuses_commit_of_handler) {
            has_refused_commit = true;
            roll_back();
            throw ServerError(server_.personality().error.refused);
          }
          if (has_transaction()) ++foreign_commits;
          return commit();
        }
        if (text == "ROLLBACK") return roll_back();
        if (text.starts_with("SAVEPOINT ")) return set_savepoint(name());
        if (text.starts_with("ROLLBACK TO ")) {
          (void)roll_back_to_savepoint(name());
          return;
        }
        const bool is_alone = !has_transaction();
        if (is_alone && is_in_handler && server_.personality().refuses_commit_of_handler) {
          has_refused_commit = true;
          throw ServerError(server_.personality().error.refused);
        }
        (void)run(sql);
        if (is_alone) ++foreign_commits;
      },
      text == "COMMIT");
}

}  // namespace txinbox::sim
