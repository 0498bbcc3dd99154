#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

#include <soci/soci.h>

#include <txinbox/pool.hpp>

namespace txinbox::test {

/// The database that this run of the suite is on: "sqlite3", "mysql" (MariaDB and MySQL) or
/// "postgresql", from the environment variable TXINBOX_TEST_DATABASE; "sqlite3" when it is not set.
const std::string& database();
inline bool on_sqlite3() { return database() == "sqlite3"; }
inline bool on_mysql() { return database() == "mysql"; }
inline bool on_postgresql() { return database() == "postgresql"; }

/// Which of the two servers "mysql" is. MariaDB takes what one round trip can carry as one statement, MySQL as a
/// procedure. Told by an engine, because unknown_server.sh starts a MariaDB with another version string.
bool on_mariadb();
inline bool has_procedures() { return on_mysql() && !on_mariadb(); }

/// An empty database of its own for one test: a file, a MySQL database, a PostgreSQL schema on the
/// server that TXINBOX_TEST_URL names. Removed at the end, also when others are still connected.
class TestDatabase {
 public:
  enum class Tables { migrated, none };

  explicit TestDatabase(Tables = Tables::migrated);
  ~TestDatabase();
  TestDatabase(const TestDatabase&) = delete;
  TestDatabase& operator=(const TestDatabase&) = delete;

  /// For open_pool.
  const std::string& url() const { return url_; }

  Pool pool(std::size_t connections = 4) const;
  Pool pool(PoolOptions) const;

  /// A plain session of SOCI's, as a service that owns its sessions would open it: nothing configured
  /// but SQLite's busy time-out. `more` is added to SOCI's connection string.
  std::unique_ptr<soci::session> session(const std::string& more = "") const;

  /// The same through a proxy, whose URL this is.
  static std::unique_ptr<soci::session> session_through(const std::string& url);

  /// Runs one statement, or fetches one number, on a session kept for that: what others committed. Any
  /// number of threads.
  void run(const std::string& sql) const;
  long long number(const std::string& sql) const;
  std::string text(const std::string& sql) const;

  /// Closes that session until it is needed again. SQLite's connections must not be carried into another
  /// process.
  void disconnect() const;

  /// Whether this run may kill the database's server: on_database.sh sets TXINBOX_TEST_RESTART.
  static bool can_restart_server();

  /// Kills the server, keeps it away for so long, and waits until it is back. Other databases of the test must
  /// `disconnect` afterwards.
  void restart_server(std::chrono::seconds away = {}) const;

 private:
  soci::session& own() const;

  std::string name_;
  std::string url_;
  std::string soci_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<soci::session> own_;
};

}  // namespace txinbox::test
