#include "support/test_database.hpp"

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include <soci/soci.h>
#include <txinbox/schema.hpp>

#include "backend/registry.hpp"
#include "base/token.hpp"
#include "base/url.hpp"
#include "soci_adapter/soci_connection.hpp"
#include "support/mysql_sessions.hpp"

namespace txinbox::test {
namespace {

std::string environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

/// A random name, so that the test never finds tables of an earlier run.
std::string unique_name() { return "txinbox_test_" + detail::Token::random().hex(); }

std::string server_url() {
  const std::string url = environment("TXINBOX_TEST_URL", "");
  if (url.empty()) throw std::runtime_error("TXINBOX_TEST_URL is not set; tests/run.sh starts servers and sets it");
  return url;
}

std::unique_ptr<soci::session> open(const std::string& url, const std::string& more) {
  const auto& kind = backend::soci_database_named(database());
  // A session as a service opens it by itself. It has only SQLite's busy time-out, and no other time-out of a pool.
  const detail::Url parts = detail::parse_url(url);
  std::string string;
  const auto add = [&](const std::string& name, const std::string& value) {
    if (!value.empty()) string += name + "='" + value + "' ";
  };
  if (on_sqlite3()) {
    string = "dbname=\"" + (parts.has_authority ? "/" + parts.path : parts.path) + "\" timeout=5 ";
  } else {
    add("host", parts.host);
    add("port", parts.port);
    add("user", parts.user);
    add("password", parts.password);
    add(on_mysql() ? "db" : "dbname", parts.path);
    for (const auto& [name, value] : parts.parameters) add(name, value);
  }
  return kind.open(kind.factory(), string + more, {});
}

/// Ends the sessions that would block the removal: a test may leave a transaction open on purpose.
void disconnect_others(soci::session& server, const std::string& name) {
  if (on_postgresql()) {
    server << "select count(pg_terminate_backend(pid)) from (select distinct l.pid from pg_locks l "
              "join pg_class c on c.oid = l.relation join pg_namespace n on n.oid = c.relnamespace "
              "where n.nspname = '" +
                  name + "' and l.pid <> pg_backend_pid()) others";
    return;
  }
  std::vector<long long> ids(1000);
  server << "select id from " + processlist() + " where db = '" + name + "'", soci::into(ids);
  for (const long long id : ids) {
    try {
      server << "kill " + std::to_string(id);
    } catch (const soci::soci_error&) {  // NOLINT(bugprone-empty-catch): the session has ended
    }
  }
}

/// Whether exactly one of these rows exists on the server.
bool finds_one(const std::string& rows) {
  int count = 0;
  *open(server_url(), "") << "select count(*) from " + rows, soci::into(count);
  return count == 1;
}

}  // namespace

const std::string& database() {
  static const std::string name = environment("TXINBOX_TEST_DATABASE", "sqlite3");
  return name;
}

bool on_mariadb() {
  static const bool is = on_mysql() && finds_one("information_schema.engines where engine = 'Aria'");
  return is;
}

bool on_galera() {
  const char* provider =
      "information_schema.global_variables where variable_name = 'wsrep_provider' and "
      "variable_value not in ('', 'none')";
  static const bool is = on_mariadb() && finds_one(provider);
  return is;
}

bool on_oceanbase() {
  const char* view = "information_schema.tables where table_schema = 'oceanbase' and table_name = 'V$OB_LOCKS'";
  static const bool is = on_mysql() && finds_one(view);
  return is;
}

bool has_binary_log() {
  long long has = 0;
  if (on_mysql()) *open(server_url(), "") << "select @@log_bin", soci::into(has);
  return has != 0;
}

TestDatabase::TestDatabase(Tables tables) : name_(unique_name()) {
  if (on_sqlite3()) {
    url_ = "sqlite://" + (std::filesystem::temp_directory_path() / (name_ + ".db")).string();
  } else {
    const std::string base = server_url();
    const auto server = open(base, "");
    if (on_mysql()) {
      *server << "create database " + name_;
      url_ = base.substr(0, base.rfind('/') + 1) + name_;
    } else {
      *server << "create schema " + name_;
      url_ = base + (base.find('?') == std::string::npos ? "?" : "&") + "options=-csearch_path%3D" + name_;
    }
  }
  soci::session& sql = own();  // on SQLite, this creates the file
  if (tables == Tables::migrated) migrate(sql);
}

TestDatabase::~TestDatabase() {
  own_.reset();
  try {
    if (on_sqlite3()) {
      const std::string file = url_.substr(std::string("sqlite://").size());
      for (const char* suffix : {"", "-wal", "-shm", "-journal"}) std::filesystem::remove(file + suffix);
    } else if (on_mysql()) {
      const auto server = open(server_url(), "");
      disconnect_others(*server, name_);
      *server << "set lock_wait_timeout = 10";
      *server << "drop database " + name_;
    } else {
      const auto server = open(server_url(), "");
      disconnect_others(*server, name_);
      *server << "set lock_timeout = '10s'; set client_min_messages = warning";
      *server << "drop schema " + name_ + " cascade";
    }
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the servers are private and end soon
  }
}

Pool TestDatabase::pool(std::size_t connections) const { return open_pool(url_, {.connections = connections}); }

Pool TestDatabase::pool(PoolOptions options) const { return open_pool(url_, std::move(options)); }

std::unique_ptr<soci::session> TestDatabase::session(const std::string& more) const { return open(url_, more); }

std::unique_ptr<soci::session> TestDatabase::session_through(const std::string& url) { return open(url, ""); }

soci::session& TestDatabase::own() const {
  if (!own_) own_ = session();
  return *own_;
}

void TestDatabase::disconnect() const {
  const std::lock_guard lock(mutex_);
  own_.reset();
}

bool TestDatabase::can_restart_server() { return !environment("TXINBOX_TEST_RESTART", "").empty(); }

void TestDatabase::restart_server(std::chrono::seconds away) const {
  std::string command = environment("TXINBOX_TEST_RESTART", "");
  if (away.count() > 0) command += " " + std::to_string(away.count());
  if (std::system(command.c_str()) != 0) {  // NOLINT(cert-env33-c)
    throw std::runtime_error("the server did not start again");
  }
  disconnect();
}

void TestDatabase::run(const std::string& sql) const {
  const std::lock_guard lock(mutex_);
  own() << sql;
}

long long TestDatabase::number(const std::string& sql) const {
  const std::lock_guard lock(mutex_);
  long long value = 0;
  soci::indicator indicator = soci::i_null;
  own() << sql, soci::into(value, indicator);
  if (!own_->got_data() || indicator != soci::i_ok) throw std::runtime_error("no number from: " + sql);
  return value;
}

std::string TestDatabase::text(const std::string& sql) const {
  const std::lock_guard lock(mutex_);
  std::string value;
  soci::indicator indicator = soci::i_null;
  own() << sql, soci::into(value, indicator);
  return own_->got_data() && indicator == soci::i_ok ? value : std::string();
}

}  // namespace txinbox::test
