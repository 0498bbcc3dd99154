#include "orders/scripted_database.hpp"

#include <stdlib.h>

#include <algorithm>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>
#include <txinbox/native.hpp>
#include <txinbox/schema.hpp>

#include "backend/database_error.hpp"
#include "backend/registry.hpp"
#include "orders/scripted_session.hpp"
#include "types/enum_names.hpp"

namespace txinbox::test {

using namespace backend;

namespace {

constexpr detail::EnumNames<SqlTwist, SqlTwist::commit_late> twist_names("busy", "deadlock", "full", "read_only",
                                                                         "lose_request", "lose_reply", "commit_late");
constexpr detail::EnumNames<CommitRule, CommitRule::commits> rule_names("refuses", "watches", "commits");

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

}  // namespace

std::string_view to_string(SqlTwist twist) noexcept { return twist_names[twist]; }
std::string_view to_string(CommitRule rule) noexcept { return rule_names[rule]; }

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
  for (const auto& [connection, session] : sessions_) session->start();
  script_ = std::move(script);
  calls_.clear();
  running_ = true;
  has_disturbed_library_ = false;
}

std::optional<SqlTwist> ScriptedDatabase::next(std::span<const SqlTwist> possible) {
  if (!running_) return std::nullopt;
  const int call = static_cast<int>(calls_.size());
  calls_.push_back(possible);
  const auto found = std::ranges::find(script_, call, &SqlTwistAt::call);
  if (found == script_.end()) return std::nullopt;
  if (std::ranges::find(possible, found->what) == possible.end()) {
    throw std::logic_error(fmt::format("call {} cannot have {}", call, to_string(found->what)));
  }
  if (!in_handler_) has_disturbed_library_ = true;
  return found->what;
}

void ScriptedDatabase::end_late_commits() {
  for (const auto& commit : std::exchange(late_commits_, {})) commit();
}

void ScriptedDatabase::run_of_handler(::sqlite3* connection, const std::string& sql) {
  in_handler_ = true;
  try {
    sessions_.at(connection)->run_of_handler(sql);
  } catch (...) {
    in_handler_ = false;
    throw;
  }
  in_handler_ = false;
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
