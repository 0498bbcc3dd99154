#include "sim/database/server.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "sim/database/sqlite_values.hpp"

namespace txinbox::sim {

namespace {

/// How many numbers a sequence gives at most that rows have.
constexpr std::size_t most_stale_numbers = 20;

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
    if (each == own_.get()) continue;
    if (has_pooler && each->is_idle()) {
      each->is_read_only_ = false;
    } else {
      each->end();
    }
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
  if (makes_sequences_stale && personality().has_sequences) {
    const auto numbers = static_cast<std::int64_t>(1 + Threads::instance()->any_of(most_stale_numbers));
    if (store_.find_table("txinbox_outbox_message")->set_number_back(numbers)) had_stale_sequence_ = true;
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

}  // namespace txinbox::sim
