#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/message.hpp>
#include <txinbox/pool.hpp>

namespace txinbox::bench {

/// Where and how to measure.
struct Target {
  std::string name = "sqlite3";  ///< sqlite3, mariadb, mysql or postgresql
  std::string folder = ".";      ///< For SQLite's files.
  bool durable = true;           ///< Whether a commit waits for the disk.
};

/// A new database with the tables of the inbox and of the business work, removed at the end. The servers'
/// URLs come from TXINBOX_TEST_MARIADB_URL and TXINBOX_TEST_POSTGRESQL_URL.
class Database {
 public:
  explicit Database(const Target& target, const std::string& suffix = "");
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  const std::string& url() const noexcept { return url_; }

  /// With the durability of the target.
  Pool pool(std::size_t connections) const { return pool(connections, url_); }

  /// The same by way of a proxy on the loopback.
  Pool pool_through(unsigned short port, std::size_t connections) const;

  /// The server's port; 0 for SQLite.
  unsigned short port() const;

 private:
  Pool pool(std::size_t connections, const std::string& url) const;

  Target target_;
  std::string server_url_;
  std::string name_;
  std::string url_;
};

/// How many rows the business work is spread over.
inline constexpr int account_rows = 1000;

/// `count` messages of distinct keys, in the order of their keys.
std::vector<Message> messages(std::string_view prefix, int first, int count);

/// The account that a message changes: by the number at the end of its key.
int row_of(const Message& message);

}  // namespace txinbox::bench
