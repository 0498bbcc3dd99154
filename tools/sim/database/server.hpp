#pragma once

// A simulated database server, its connections, and what can go wrong between a client and the server.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sqlite3.h>
#include <txinbox/error.hpp>

#include "sim/database/migrated.hpp"
#include "sim/database/store.hpp"
#include "sim/database/virtual_tables.hpp"
#include "sim/threads.hpp"

namespace txinbox::sim {

/// How often something goes wrong, as a share of the calls.
struct DatabaseFaults {
  double lose_request = 0;  ///< The connection ends before the server gets the statement.
  double lose_reply = 0;    ///< The server runs the statement, then the connection ends.
  double commit_late = 0;   ///< The connection ends while COMMIT is under way. The server commits later.
  double refuse = 0;        ///< The server has no disk space for a statement.
  double conflict = 0;      ///< A statement of a transaction, or COMMIT, fails, because of another transaction.
  SimTime slowest{std::chrono::microseconds(200)};  ///< Of a call, without a wait for locks.

  friend bool operator==(const DatabaseFaults&, const DatabaseFaults&) = default;
};

class Server;

/// A connection of SQLite with the tables, and its statements. The sessions use it one after the other, because it
/// takes long to make one.
struct TableConnection {
  explicit TableConnection(Server&);
  ~TableConnection();
  TableConnection(const TableConnection&) = delete;
  TableConnection& operator=(const TableConnection&) = delete;

  ::sqlite3* handle = nullptr;
  View view;
  std::map<std::string, sqlite3_stmt*> statements = {};
};

/// The error that a client gets.
class SimulatedError final : public std::runtime_error, public DatabaseError {
 public:
  SimulatedError(const Personality& personality, std::string_view code, std::string_view what)
      : runtime_error("simulated " + std::string(what)), DatabaseError(personality.codes, std::string(code)) {}
  const char* what() const noexcept override { return runtime_error::what(); }
};

/// The server's side of a connection.
class ServerSession {
 public:
  explicit ServerSession(Server&, std::shared_ptr<Process> client);
  ~ServerSession();
  ServerSession(const ServerSession&) = delete;
  ServerSession& operator=(const ServerSession&) = delete;

  /// The session of a connection that a handler has got.
  static ServerSession& of(::sqlite3*);

  ::sqlite3* handle() const noexcept { return is_lost_ ? nullptr : tables_->handle; }
  bool is_lost() const noexcept { return is_lost_; }
  Server& server() const noexcept { return server_; }

  /// The kind of a request. COMMIT is also the end of a statement that is a transaction of its own.
  enum class Request { statement, commit, rollback };

  /// Sends a request, lets the server do `work`, and waits for the reply.
  ///
  /// Errors: `SimulatedError`.
  void call(const std::function<void()>& work, Request = Request::statement);

  // --- What the server does. Only within `call`.

  void begin();
  void commit();
  void roll_back() noexcept;
  bool has_transaction() const noexcept { return view().transaction != nullptr; }
  Transaction* transaction() const noexcept { return view().transaction; }
  bool is_in_guarded_transaction() const noexcept { return has_transaction() && view().transaction->is_guarded; }
  bool is_usable() const noexcept { return has_transaction() && !view().transaction->is_aborted; }

  void set_savepoint(const std::string& name);
  bool release_savepoint(const std::string& name);
  bool roll_back_to_savepoint(const std::string& name);

  /// Runs one statement on the tables. Without a transaction, it runs in one of its own.
  std::size_t run(const std::string& sql, const Values& parameters = {}, std::vector<Values>* rows = nullptr);

  /// The last argument of sim_mark().
  std::int64_t marked() const noexcept { return view().marked; }

  // --- A handler's statement, or one of a check

  /// BEGIN, COMMIT, ROLLBACK, SAVEPOINT x, ROLLBACK TO x, or a statement on the tables.
  void execute(const std::string& sql);

  /// A statement that waits for another transaction, which waits for this one.
  void run_into_deadlock();

  /// Whether a pooler can give the connection to another server.
  bool is_idle() const noexcept { return !is_in_call_ && !has_transaction(); }

  /// Whether a handler runs. Then some databases refuse what it does outside of the transaction.
  bool is_in_handler = false;

  /// The client's process is gone, or the network. The server rolls back.
  void end() noexcept;

  /// How often somebody else than txinbox has committed something.
  int foreign_commits = 0;
  bool has_refused_commit = false;
  bool may_have_committed = false;

 private:
  friend class Server;
  void begin_of_client();
  void commit_of_client();
  void change_of_client(const std::string& sql);
  View& view() const noexcept { return tables_->view; }
  void refuse_aborted() const;
  void check_faults(Request) const;
  bool refuses_changes() const;
  void fail_statement(const ServerError&, std::size_t changes, Request);
  void run_once(const std::string& sql, const Values& parameters, std::vector<Values>* rows);
  void commit_late();
  [[noreturn]] void lose(std::string_view what);

  Server& server_;
  const std::shared_ptr<Process> client_;
  std::unique_ptr<TableConnection> tables_;
  std::shared_ptr<Transaction> transaction_;
  std::vector<std::shared_ptr<Transaction>> ended_;  ///< A thread may still wait in one of them.
  bool is_read_only_;                                ///< The connection leads to a standby.
  bool is_lost_ = false;
  bool is_in_call_ = false;
  bool commits_late_ = false;  ///< The connection ends during this call's COMMIT.
};

/// The names of columns, and their values.
using Texts = std::vector<std::pair<std::string_view, std::string>>;

class Server {
 public:
  Server(const Personality&, const Migrated&);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  const Personality& personality() const noexcept { return store_.personality(); }
  Store& store() noexcept { return store_; }
  const std::vector<TableDefinition>& tables() const noexcept { return migrated_.tables; }

  DatabaseFaults faults;

  /// Idle connections outlive restarts and failovers: a pooler gives them to the new server, and they wait for it.
  bool has_pooler = false;

  /// After a failover, the sequence of the outbox gives numbers that rows have, if the database has sequences.
  bool makes_sequences_stale = false;
  bool had_stale_sequence() const noexcept { return had_stale_sequence_; }

  /// Ends all sessions. Nobody can connect until the time. What was durable stays.
  void restart(SimTime until);

  /// Does the same, and another server takes over then, which lacks the commits of the last time. Returns the keys of
  /// the effects that are lost.
  std::set<std::string> fail_over(SimTime until, SimTime lost);

  /// Until this time, new connections lead to a standby, which refuses all changes.
  void lead_to_standby(SimTime until) noexcept { leads_to_standby_until_ = until; }

  /// Until this time, the server refuses all changes, also in the transactions that are open.
  void become_read_only(SimTime until) noexcept { read_only_until_ = until; }

  /// Ends the sessions of a process.
  void end_sessions(const Process&) noexcept;

  /// Ends a session. Returns the name of its process; empty if nobody is connected.
  std::string kill_any_session();

  bool is_up() const noexcept { return Threads::instance()->now() >= down_until_; }

  /// How many durable rows have these texts in these columns. An index must begin with the first column.
  std::size_t count_durable(std::string_view table, const Texts& texts);

  /// A query without a session, for the checks.
  std::vector<Values> query(const std::string& sql);

 private:
  friend class ServerSession;
  std::unique_ptr<TableConnection> take_tables();
  void end_all_sessions(SimTime until);

  const Migrated migrated_;
  Store store_;
  std::vector<std::unique_ptr<TableConnection>> unused_tables_;
  std::vector<ServerSession*> sessions_;
  SimTime down_until_{0};
  SimTime leads_to_standby_until_{0};
  SimTime read_only_until_{0};
  bool had_stale_sequence_ = false;
  int restarts_ = 0;
  std::chrono::milliseconds lock_timeout_{1000};
  std::unique_ptr<ServerSession> own_;
};

}  // namespace txinbox::sim
