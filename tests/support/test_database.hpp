#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

#include <soci/soci.h>

#include <txinbox/pool.hpp>

namespace txinbox::test {

/// The database of this run of the tests: "sqlite3", "mysql" (MariaDB and MySQL) or "postgresql". The environment
/// variable TXINBOX_TEST_DATABASE names it; "sqlite3" if it is not set. capabilities.hpp says what each database does.
const std::string& database();
inline bool on_sqlite3() { return database() == "sqlite3"; }
inline bool on_mysql() { return database() == "mysql"; }
inline bool on_postgresql() { return database() == "postgresql"; }

/// Whether "mysql" is a MariaDB or a MySQL server. For one round trip, txinbox uses one statement on MariaDB, and a
/// procedure on MySQL. An engine of the server decides, because unknown_server.sh starts a MariaDB with another version
/// string.
bool on_mariadb();

/// Whether it is a MariaDB server that is a node of a Galera cluster.
bool on_galera();

/// Whether it is a server of OceanBase.
bool on_oceanbase();

/// Whether it is a server of MariaDB or MySQL with a binary log. A Galera node may have none.
bool has_binary_log();

/// An empty database for one test: a file, a MySQL database, or a PostgreSQL schema on the server that TXINBOX_TEST_URL
/// names. The destructor removes it, even if others are still connected.
class TestDatabase {
 public:
  enum class Tables { migrated, none };

  explicit TestDatabase(Tables = Tables::migrated);
  ~TestDatabase();
  TestDatabase(const TestDatabase&) = delete;
  TestDatabase& operator=(const TestDatabase&) = delete;

  /// The URL for open_pool.
  const std::string& url() const { return url_; }

  Pool pool(std::size_t connections = 4) const;
  Pool pool(PoolOptions) const;

  /// A plain session of SOCI, as a service that owns its sessions would open it. Only SQLite's busy time-out is set.
  /// `more` is added to SOCI's connection string.
  std::unique_ptr<soci::session> session(const std::string& more = "") const;

  /// The same through a proxy with this URL.
  static std::unique_ptr<soci::session> session_through(const std::string& url);

  /// Runs one statement, or reads one number, on a separate session: it sees what others have committed. Any number of
  /// threads may call it.
  void run(const std::string& sql) const;
  long long number(const std::string& sql) const;
  std::string text(const std::string& sql) const;

  /// Closes that session until it is needed again. A process must not pass SQLite's connections to a child process.
  void disconnect() const;

  /// Whether this run may kill the server: on_database.sh sets TXINBOX_TEST_RESTART.
  static bool can_restart_server();

  /// Kills the server, waits for this time, and starts it again. Afterwards, the other databases of the test must
  /// `disconnect`.
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
