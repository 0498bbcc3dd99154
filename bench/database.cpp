#include "database.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include <fmt/format.h>
#include <soci/soci.h>
#include <txinbox/schema.hpp>

namespace txinbox::bench {
namespace {

std::string server_url(const std::string& name) {
  std::string variable = "TXINBOX_TEST_" + name + "_URL";
  std::ranges::transform(variable, variable.begin(), [](unsigned char c) { return std::toupper(c); });
  const char* url = std::getenv(variable.c_str());
  if (url == nullptr) throw std::runtime_error(fmt::format("{} is not set; bench/run.sh starts the servers", variable));
  return url;
}

void remove_file(const std::string& file) {
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file + suffix);
}

void make_accounts(soci::session& sql) {
  sql << "CREATE TABLE bench_account (id INTEGER NOT NULL PRIMARY KEY, n INTEGER NOT NULL)";
  std::string rows;
  for (int id = 1; id <= account_rows; ++id) rows += fmt::format("{}({}, 0)", id == 1 ? "" : ", ", id);
  sql << "INSERT INTO bench_account VALUES " + rows;
}

}  // namespace

Database::Database(const Target& target, const std::string& suffix) : target_(target), name_("txinbox_bench" + suffix) {
  if (target.name == "sqlite3") {
    name_ = target.folder + "/" + name_ + ".db";
    remove_file(name_);
    url_ = "sqlite:" + name_;
  } else {
    server_url_ = server_url(target.name);
    url_ = server_url_.substr(0, server_url_.rfind('/') + 1) + name_;
    Pool server = open_pool(server_url_, {.connections = 1});
    const auto connection = server.acquire();
    soci::session& sql = connection;
    if (target.name != "postgresql") {
      sql << fmt::format("SET GLOBAL innodb_flush_log_at_trx_commit = {}", target.durable ? 1 : 0);
      sql << fmt::format("SET GLOBAL sync_binlog = {}", target.durable ? 1 : 0);
    }
    sql << "DROP DATABASE IF EXISTS " + name_;
    sql << "CREATE DATABASE " + name_;
  }
  Pool pool = this->pool(1);
  const auto connection = pool.acquire();
  migrate(connection);
  make_accounts(connection);
}

Database::~Database() {
  try {
    if (target_.name == "sqlite3") {
      remove_file(name_);
      return;
    }
    Pool server = open_pool(server_url_, {.connections = 1});
    const auto connection = server.acquire();
    connection.session() << "DROP DATABASE " + name_;
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the server and its data are removed later
  }
}

Pool Database::pool(PoolOptions options, const std::string& url) const {
  if (target_.name == "sqlite3") {
    options.on_connect = [level = target_.durable ? "FULL" : "OFF"](soci::session& sql) {
      sql << std::string("PRAGMA synchronous = ") + level;
    };
  } else if (target_.name == "postgresql") {
    options.on_connect = [level = target_.durable ? "on" : "off"](soci::session& sql) {
      sql << std::string("SET synchronous_commit = ") + level;
    };
  }
  return open_pool(url, options);
}

void empty_tables(soci::session& sql, const Target& target, std::initializer_list<std::string_view> tables) {
  const bool is_sqlite3 = target.name == "sqlite3";
  for (const std::string_view table : tables) {
    sql << fmt::format("{} {}", is_sqlite3 ? "DELETE FROM" : "TRUNCATE TABLE", table);
  }
  if (is_sqlite3) sql << "PRAGMA wal_checkpoint(TRUNCATE)";
}

namespace {

/// The position of the port in a URL such as mysql://user:password@host:port/database.
std::pair<std::size_t, std::size_t> port_in(const std::string& url) {
  const auto colon = url.find(':', url.find('@'));
  const auto slash = url.find('/', colon);
  if (colon == std::string::npos || slash == std::string::npos)
    throw std::runtime_error("the server's URL has no port");
  return {colon + 1, slash};
}

}  // namespace

unsigned short Database::port() const {
  if (target_.name == "sqlite3") return 0;
  const auto [begin, end] = port_in(url_);
  return static_cast<unsigned short>(std::stoul(url_.substr(begin, end - begin)));
}

Pool Database::pool_through(unsigned short port, std::size_t connections) const {
  const auto [begin, end] = port_in(url_);
  return pool({.connections = connections}, url_.substr(0, begin) + std::to_string(port) + url_.substr(end));
}

std::vector<Message> messages(std::string_view prefix, int first, int count) {
  std::vector<Message> result;
  result.reserve(static_cast<std::size_t>(count));
  for (int i = first; i < first + count; ++i) result.push_back({.business_key = fmt::format("{}-{:08}", prefix, i)});
  return result;
}

int row_of(const Message& message) {
  const auto& key = message.business_key;
  // Messages with successive keys change rows that are far apart.
  return 1 + static_cast<int>((std::strtoul(key.c_str() + key.size() - 8, nullptr, 10) * 617) % account_rows);
}

}  // namespace txinbox::bench
