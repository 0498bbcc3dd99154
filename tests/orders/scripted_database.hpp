#pragma once

// A database for tests of the library's own decisions. Its rows are real: they are in a file of SQLite. Its errors are
// the test's: at each call of a session the test can lose the request, lose the reply, or make the server refuse.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sqlite3.h>

#include "backend/database.hpp"
#include "backend/session.hpp"
#include "pool/pool_state.hpp"

namespace txinbox::test {

/// An event that can happen at a call.
enum class SqlTwist {
  busy,       ///< The server refuses the statement. A later try may succeed. The transaction stays open.
  deadlock,   ///< The same, but the server rolls the transaction back.
  full,       ///< The server has no disk space for the statement. The transaction stays open.
  read_only,  ///< The server has become a replica: it refuses this statement and the next ones of the connection, and
              ///< rolls nothing back. Reads go on.
  lose_request,  ///< The connection ends before the server gets the statement. The server rolls back.
  lose_reply,    ///< The server runs the statement, then the connection ends. The server rolls back what is open.
  commit_late,   ///< The connection ends. The server commits later: when another session waits for its locks.
};

std::string_view to_string(SqlTwist) noexcept;

/// A twist at one call. The calls of all sessions are counted from 0.
struct SqlTwistAt {
  int call;
  SqlTwist what;
};

/// The twists that can happen at each call.
using SqlCalls = std::vector<std::span<const SqlTwist>>;

/// How the database treats a handler that ends the transaction.
enum class CommitRule {
  refuses,  ///< It refuses the handler's COMMIT, as PostgreSQL and a pool's SQLite do.
  watches,  ///< It commits, and the session sees whether the handler has committed SQL after a ROLLBACK.
  commits,  ///< It commits, and the session sees only that the transaction has ended, as on MariaDB.
};

std::string_view to_string(CommitRule) noexcept;

class ScriptedSession;

/// The database, its script, and the sessions that are open.
class ScriptedDatabase final : public backend::Database {
 public:
  explicit ScriptedDatabase(CommitRule);
  ~ScriptedDatabase() override;

  /// Opens a pool with one connection. Opening it makes no call.
  std::shared_ptr<detail::PoolState> open_pool();

  /// Empties the tables and sets the next script.
  void start(std::vector<SqlTwistAt> script);

  /// The calls of the last script: which twists each of them can have.
  const SqlCalls& calls() const noexcept { return calls_; }

  /// The calls are not counted and nothing happens at them from now on.
  void end_script() noexcept { running_ = false; }

  /// Runs one statement of a handler on its connection. It is a call.
  ///
  /// Errors: a database error.
  void run_of_handler(::sqlite3* connection, const std::string& sql);

  /// Returns the committed value of a query, or -1 if there is no row.
  std::int64_t value(const std::string& sql);
  void change(const std::string& sql);

  /// Whether something has happened at a call of the library, and not only at statements of handlers.
  bool has_disturbed_library() const noexcept { return has_disturbed_library_; }

  CommitRule rule() const noexcept { return rule_; }

  std::string_view name() const noexcept override { return real_.name(); }
  backend::ErrorMeaning meaning_of(const std::string& code) const noexcept override { return real_.meaning_of(code); }
  backend::ErrorDescription describe(const std::string& code) const override { return real_.describe(code); }
  std::unique_ptr<backend::Session> attach(backend::ConnectionPtr, backend::Ownership) const override;
  std::unique_ptr<backend::Catalog> catalog(backend::ConnectionPtr connection) const override {
    return real_.catalog(std::move(connection));
  }
  void refuse_unopened(void* handle) const override { real_.refuse_unopened(handle); }
  std::vector<backend::Row> query(const backend::NativeConnection& connection, const std::string& sql,
                                  std::size_t columns) const override {
    return real_.query(connection, sql, columns);
  }
  std::size_t run(const backend::NativeConnection& connection, const std::string& sql) const override {
    return real_.run(connection, sql);
  }
  std::unique_ptr<backend::Dialect> dialect(const std::string& schema) const override { return real_.dialect(schema); }

 private:
  friend class ScriptedSession;
  friend class ScriptedConnector;

  /// Returns what happens at the next call.
  std::optional<SqlTwist> next(std::span<const SqlTwist> possible);

  /// Lets the server end the commits that came late.
  void end_late_commits();

  ::sqlite3* open() const;

  const CommitRule rule_;
  const backend::Database& real_;
  const std::filesystem::path folder_;
  ::sqlite3* const own_;  ///< The test's own connection.
  bool running_ = false;
  bool in_handler_ = false;
  bool has_disturbed_library_ = false;
  std::vector<SqlTwistAt> script_;
  SqlCalls calls_;
  std::map<::sqlite3*, ScriptedSession*> sessions_;
  std::vector<std::function<void()>> late_commits_;
};

}  // namespace txinbox::test
