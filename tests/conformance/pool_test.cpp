#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/guard_cases.hpp"
#include "support/outcomes.hpp"

namespace txinbox::test {
namespace {

using std::chrono::milliseconds;

const Message order{.business_key = "order123"};

ErrorCode code_thrown_by(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.code();
  }
  FAIL("no Error was thrown");
  return {};
}

TEST_CASE("acquire waits no longer than its time-out") {
  EffectDatabase db;
  Pool pool = db.pool(PoolOptions{.connections = 1, .acquire_timeout = milliseconds(20)});
  const auto held = pool.acquire();
  CHECK(code_thrown_by([&] { auto second = pool.acquire(); }) == ErrorCode::acquire_timeout);
  TxConsumer consumer(pool, "svc", {.retry = {.max_attempts = 1}});
  CHECK(code_thrown_by([&] { (void)consumer.consume(order, add_effect); }) == ErrorCode::acquire_timeout);
}

TEST_CASE("a stop token ends the wait for a connection") {
  EffectDatabase db;
  Pool pool = db.pool(1);
  const auto held = pool.acquire();
  std::stop_source stop;
  std::thread stopper([&] { stop.request_stop(); });
  CHECK(code_thrown_by([&] { auto second = pool.acquire(stop.get_token()); }) == ErrorCode::stopped);
  stopper.join();
}

TEST_CASE("a connection that could not be opened is tried again, and takes no place of the pool") {
  EffectDatabase db;
  bool broken = false;
  Pool pool =
      db.pool(PoolOptions{.connections = 2, .acquire_timeout = milliseconds(20), .on_connect = [&](soci::session&) {
                            if (broken) throw std::domain_error("as if the server refused it");
                          }});
  const auto held = pool.acquire();
  broken = true;
  for (int i = 0; i < 3; ++i) CHECK_THROWS_AS((void)pool.acquire(), std::domain_error);
  broken = false;
  CHECK_NOTHROW((void)pool.acquire());
}

/// The URL with other parts.
std::string url_with(const std::string& url, const std::string& user, const std::string& database) {
  const auto begin = url.find("://") + 3;
  const auto password = url.find(':', begin);
  const auto path = url.find('/', begin);
  const auto more = std::min(url.find('?', path), url.size());
  const std::string named = database.empty() ? url.substr(path + 1, more - path - 1) : database;
  return url.substr(0, begin) + (user.empty() ? url.substr(begin, password - begin) : user) +
         url.substr(password, path - password) + "/" + named + url.substr(more);
}

TEST_CASE("what the server or the file system refuses is to be mended, and not tried again") {
  const TestDatabase db(TestDatabase::Tables::none);
  std::vector<std::string> urls;
  if (on_sqlite3()) {
    urls = {"sqlite:///no/such/folder/x.db", "sqlite:" TXINBOX_SOURCE_DIR "/tests/main.cpp",
            "sqlite:" TXINBOX_SOURCE_DIR};
  } else {
    urls = {url_with(db.url(), "nobody", ""), url_with(db.url(), "", "nowhere")};
  }
  for (const std::string& url : urls) {
    CAPTURE(url);
    std::exception_ptr error;
    try {
      (void)open_pool(url);
    } catch (...) {
      error = std::current_exception();
    }
    CHECK(code_of(error) == ErrorCode::access_refused);
    CHECK(action_for(error) == Action::stop);
    CHECK(!is_transient(error));
  }
}

TEST_CASE("a parameter of the URL that the client library does not know is refused by name") {
  if (!on_postgresql()) return;
  const TestDatabase db(TestDatabase::Tables::none);
  const std::string url = db.url() + (db.url().find('?') == std::string::npos ? "?" : "&") + "nonsense=1";
  try {
    (void)open_pool(url);
    FAIL("it was accepted");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::invalid_argument);
    CHECK(std::string(error.what()).find("nonsense") != std::string::npos);
  }
}

TEST_CASE("a connection that the server closed while it was idle is not lent" * doctest::skip(on_sqlite3())) {
  EffectDatabase db;
  Pool pool = db.pool(1);
  const long long before = connection_id(pool.acquire().session());
  kill_connection(before, db);
  const Connection next = pool.acquire();
  CHECK(connection_id(next.session()) != before);
}

TEST_CASE("a connection that is given back frees the one who waits") {
  EffectDatabase db;
  Pool pool = db.pool(1);
  auto held = std::make_unique<Connection>(pool.acquire());
  std::thread releaser([&] {
    std::this_thread::sleep_for(milliseconds(20));
    held.reset();
  });
  long long one = 0;
  auto second = pool.acquire();
  second.session() << "select 1", soci::into(one);
  CHECK(one == 1);
  releaser.join();
}

TEST_CASE("a connection comes back rolled back") {
  EffectDatabase db;
  Pool pool = db.pool(1);
  {
    auto connection = pool.acquire();
    connection.session().begin();
    connection.session() << "insert into effect values ('left open')";
  }
  {
    auto connection = pool.acquire();
    long long rows = 1;
    connection.session() << "select count(*) from effect", soci::into(rows);
    CHECK(rows == 0);
  }
  TxConsumer consumer(pool, "svc");
  CHECK(consumer.consume(order, add_effect).outcome == Outcome::consumed);
}

/// What a handler or a user of a connection may change, and must not leave to the next.
std::vector<std::string> changes(const std::string& other_schema) {
  if (on_sqlite3()) return {"pragma busy_timeout = 1"};
  if (on_mysql()) {
    return {"use " + other_schema,
            "set names latin1",
            "set sql_mode = ''",
            "set autocommit = 0",
            "set session transaction isolation level serializable",
            "set time_zone = '+05:00'",
            "set foreign_key_checks = 0",
            "set innodb_lock_wait_timeout = 1",
            "set role changed"};
  }
  return {"set search_path = " + other_schema,
          "set role pg_monitor",
          "set client_encoding = latin1",
          "set default_transaction_isolation = serializable",
          "set default_transaction_read_only = on",
          "set statement_timeout = '1h'",
          "set timezone = 'Asia/Tokyo'"};
}

/// A second database or schema, with tables of the same names.
class OtherSchema {
 public:
  explicit OtherSchema(const TestDatabase& db) : db_(db) {
    if (on_sqlite3()) return;
    db.run(std::string(on_mysql() ? "create database " : "create schema ") + name);
    db.run("create table " + name + ".effect (id varchar(255))");
    if (on_mysql()) {
      db.run("create role changed");
      db.run("grant select on *.* to changed");
      // MariaDB grants it to its maker already.
      const std::string user = db.text("select current_user()");
      const std::size_t at = user.rfind('@');
      db.run("grant changed to '" + user.substr(0, at) + "'@'" + user.substr(at + 1) + "'");
    }
  }
  ~OtherSchema() {
    if (on_sqlite3()) return;
    db_.run("drop " + std::string(on_mysql() ? "database " + name : "schema " + name + " cascade"));
    if (on_mysql()) db_.run("drop role changed");
  }
  const std::string name = "txinbox_other_schema";

 private:
  const TestDatabase& db_;
};

TEST_CASE("settings that a user of a connection changed are not left to the next") {
  EffectDatabase db;
  const OtherSchema other(db);
  Pool pool = db.pool(1);
  const auto settings = [&] {
    auto connection = pool.acquire();
    return db.settings_of(connection);
  };
  const std::string before = settings();
  for (const std::string& change : changes(other.name)) {
    CAPTURE(change);
    {
      auto connection = pool.acquire();
      connection.session() << change;
    }
    CHECK(settings() == before);
  }
}

TEST_CASE("settings that a handler changed are left neither to the next handler nor to the next claim") {
  EffectDatabase db;
  const OtherSchema other(db);
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  const auto settings = [&] {
    auto connection = pool.acquire();
    return db.settings_of(connection);
  };
  const std::string before = settings();
  int n = 0;
  for (const std::string& change : changes(other.name)) {
    CAPTURE(change);
    const Message message{.business_key = "key" + std::to_string(++n)};
    for (const bool fails : {true, false}) {
      CAPTURE(fails);
      std::string inside;
      try {
        (void)consumer.consume(message, [&](soci::session& sql, Delivery& d) {
          inside = db.settings_of(sql);
          if (d.message().business_key != "never") add_effect(sql, d);
          sql << change;
          if (fails) throw HandlersOwnError("after the change");
        });
        CHECK(!fails);
      } catch (const HandlersOwnError&) {
        CHECK(fails);
      }
      CHECK(settings() == before);
    }
    const Result again = consumer.consume(message, add_effect);
    CHECK(again.outcome == Outcome::already_consumed);
    CHECK(db.effects_of(message.business_key) == 1);
  }
}

TEST_CASE("on_connect and our own settings are applied again after a reconnect") {
  EffectDatabase db;
  int connects = 0;
  Pool pool = db.pool(PoolOptions{.connections = 1, .on_connect = [&](soci::session& sql) {
                                    ++connects;
                                    if (on_sqlite3()) sql << "pragma cache_size = 777";
                                    if (on_mysql()) sql << "set time_zone = '+03:00'";
                                    if (on_postgresql()) sql << "set timezone = 'Asia/Tokyo'";
                                  }});
  TxConsumer consumer(pool, "svc");
  const auto settings = [&] {
    auto connection = pool.acquire();
    return db.settings_of(connection);
  };
  (void)consumer.consume({.business_key = "first"}, add_effect);
  const std::string before = settings();
  CHECK_THROWS((void)consumer.consume(order, [&](soci::session& sql, Delivery&) {
    sql.reconnect();
    throw HandlersOwnError("leaves a session that is not ours");
  }));
  CHECK(consumer.consume(order, add_effect).outcome == Outcome::consumed);
  CHECK(connects == 2);
  CHECK(settings() == before);
}

TEST_CASE("on_connect that leaves a transaction open is refused") {
  EffectDatabase db;
  CHECK(code_thrown_by([&] {
          auto pool = db.pool(PoolOptions{.on_connect = [](soci::session& sql) {
            sql.begin();
            sql << "insert into effect values ('x')";
          }});
        }) == ErrorCode::transaction_open);
}

TEST_CASE("a pool's sessions wait no longer than its time-outs say, also after a reconnect") {
  if (on_sqlite3()) return;
  EffectDatabase db;
  std::string query =
      "select concat_ws(' ', current_setting('lock_timeout'), current_setting('statement_timeout'), "
      "current_setting('idle_in_transaction_session_timeout'))";
  std::string expected = "3s 7s 11s";
  if (on_mysql()) {
    const bool mariadb = db.is_mariadb();
    query = std::string("select concat_ws(' ', @@innodb_lock_wait_timeout, @@lock_wait_timeout, ") +
            (mariadb ? "@@max_statement_time, @@idle_transaction_timeout)" : "@@max_execution_time, @@wait_timeout)");
    expected = mariadb ? "3 3 7.000000 11" : "3 3 7000 11";
  }
  Pool pool = db.pool(PoolOptions{.connections = 1,
                                  .lock_timeout = std::chrono::seconds(3),
                                  .statement_timeout = std::chrono::seconds(7),
                                  .idle_transaction_timeout = std::chrono::seconds(11)});
  for (int round = 0; round < 2; ++round) {
    auto connection = pool.acquire();
    std::string text;
    connection.session() << query, soci::into(text);
    CHECK(text == expected);
    kill_connection(connection, db);
  }
}

TEST_CASE("a statement that runs too long is ended, and that is transient") {
  if (on_sqlite3()) return;
  EffectDatabase db;
  if (on_mysql() && !db.is_mariadb()) return;  // MySQL ends only a SELECT that reads
  Pool pool = db.pool(PoolOptions{.connections = 1, .statement_timeout = std::chrono::seconds(1)});
  TxConsumer consumer(pool, "svc");
  const Result result = consumer.consume(order, [](soci::session& sql, Delivery& d) {
    add_effect(sql, d);
    if (d.attempt() == 1) sql << (on_mysql() ? "do sleep(60)" : "select pg_sleep(60)");
  });
  CHECK(result.outcome == Outcome::consumed);
  CHECK(db.effects() == 1);
}

TEST_CASE("a consumer that falls silent inside its handler frees its key") {
  if (on_sqlite3()) return;
  EffectDatabase db;
  Pool silent = db.pool(PoolOptions{.connections = 1, .idle_transaction_timeout = std::chrono::seconds(3)});
  TxConsumer sleeper(silent, "svc", {.retry = {.max_attempts = 1}});
  Pool pool = db.pool(1);
  TxConsumer other(pool, "svc");
  CHECK_THROWS_AS((void)sleeper.consume(order,
                                        [&](soci::session& sql, Delivery& d) {
                                          add_effect(sql, d);
                                          // The other waits for the key, and gets it when the server has had enough.
                                          CHECK(other.consume(order, add_effect).outcome == Outcome::consumed);
                                        }),
                  soci::soci_error);
  CHECK(db.effects() == 1);
}

TEST_CASE("a connection stands for its session") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  const Connection connection = pool.acquire();
  CHECK(&*connection == &connection.session());
  connection->begin();
  *connection << "insert into effect values ('a')";
  connection->commit();
  CHECK(db.effects() == 1);
}

TEST_CASE("a connection may outlive its pool object") {
  EffectDatabase db;
  auto pool = std::make_unique<Pool>(db.pool(1));
  auto connection = pool->acquire();
  pool.reset();
  connection.session() << "insert into effect values ('x')";
  CHECK(db.effects() == 1);
}

TEST_CASE("options that make no sense are refused by name") {
  const std::string url = "sqlite::memory:";
  for (const PoolOptions& options :
       {PoolOptions{.connections = 0}, PoolOptions{.connections = 1, .acquire_timeout = milliseconds(0)},
        PoolOptions{.connections = 1, .lock_timeout = milliseconds(-1)},
        PoolOptions{.connections = 1, .statement_timeout = std::chrono::hours(24 * 365)}}) {
    CHECK(code_thrown_by([&] { auto pool = open_pool(url, options); }) == ErrorCode::invalid_argument);
  }
  Pool pool = open_pool(url, {.connections = 1});
  for (const RetryPolicy& retry : {RetryPolicy{.max_attempts = 0}, RetryPolicy{.initial_backoff = milliseconds(-1)},
                                   RetryPolicy{.initial_backoff = milliseconds(10), .max_backoff = milliseconds(1)},
                                   RetryPolicy{.max_elapsed = milliseconds(-1)}}) {
    CHECK(code_thrown_by([&] { TxConsumer(pool, "svc", {.retry = retry}); }) == ErrorCode::invalid_argument);
  }
}

TEST_CASE("a server that turned read-only is transient, and the pool opens another connection") {
  if (!on_mysql()) return;
  EffectDatabase db;
  const auto admin = db.session();
  int connects = 0;
  // The test's user may write on a read-only server, so the handler meets the code in another way.
  Pool pool = db.pool(PoolOptions{.connections = 1, .on_connect = [&](soci::session&) { ++connects; }});
  TxConsumer consumer(pool, "svc");
  const Result result = consumer.consume(order, [&](soci::session& sql, Delivery& d) {
    add_effect(sql, d);
    if (d.attempt() == 1) sql << "signal sqlstate 'HY000' set mysql_errno = 1290, message_text = 'read-only'";
  });
  CHECK(result.outcome == Outcome::consumed);
  CHECK(connects == 2);
  CHECK(db.effects() == 1);
}

}  // namespace
}  // namespace txinbox::test
