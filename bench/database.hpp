#pragma once

#include <chrono>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/message.hpp>
#include <txinbox/pool.hpp>

namespace soci {
class session;
}

namespace txinbox::bench {

/// The database and its settings for a measurement.
struct Target {
  std::string name = "sqlite3";  ///< sqlite3, mariadb, mysql or postgresql
  std::string folder = ".";      ///< The folder for SQLite's files.
  bool durable = true;           ///< Whether a commit waits for the disk.
};

/// A new database with the tables of the inbox and of the business work. The destructor removes it. The URLs of the
/// servers come from TXINBOX_TEST_MARIADB_URL and TXINBOX_TEST_POSTGRESQL_URL.
class Database {
 public:
  explicit Database(const Target& target, const std::string& suffix = "");
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  const std::string& url() const noexcept { return url_; }

  /// Opens a pool with the durability of the target.
  Pool pool(std::size_t connections) const { return pool({.connections = connections}, url_); }

  /// Opens a pool for the statements that fill a large table, and count its rows.
  Pool pool_for_filling() const { return pool({.connections = 1, .statement_timeout = std::chrono::hours(1)}, url_); }

  /// Opens a pool that connects through a proxy on the loopback interface.
  Pool pool_through(unsigned short port, std::size_t connections) const;

  /// The server's port; 0 for SQLite.
  unsigned short port() const;

 private:
  Pool pool(PoolOptions options, const std::string& url) const;

  Target target_;
  std::string server_url_;
  std::string name_;
  std::string url_;
};

/// Empties these tables, because a large table is slower than a small one.
void empty_tables(soci::session&, const Target&, std::initializer_list<std::string_view> tables);

/// The number of rows that the business work changes. Messages that are in flight at the same time change different
/// rows. Otherwise the handlers of two batches would deadlock.
inline constexpr int account_rows = 50'000;

/// `count` messages with different keys, sorted by key.
std::vector<Message> messages(std::string_view prefix, int first, int count);

/// The account that a message changes. It depends on the number at the end of the key.
int row_of(const Message& message);

}  // namespace txinbox::bench
