// The settings of a pool's connections: the pool sets them, and undoes the changes of each user of a connection.

#include <chrono>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/effects.hpp"
#include "support/guard_cases.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

const Message order{.business_key = "order123"};

/// Statements that change settings. These changes must not reach the next user of the connection.
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
      // MariaDB has already granted the role to the user that created it.
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

TEST_CASE("settings that a user of a connection changed do not reach the next user") {
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

TEST_CASE("settings that a handler changed reach neither the next handler nor the next claim") {
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
          add_effect(sql, d);
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
    throw HandlersOwnError("after the reconnect");
  }));
  CHECK(consumer.consume(order, add_effect).outcome == Outcome::consumed);
  CHECK(connects == 2);
  CHECK(settings() == before);
}

TEST_CASE("an on_connect that leaves a transaction open is refused") {
  EffectDatabase db;
  CHECK(thrown_by([&] {
          auto pool = db.pool(PoolOptions{.on_connect = [](soci::session& sql) {
            sql.begin();
            sql << "insert into effect values ('x')";
          }});
        }) == "transaction_open");
}

TEST_CASE("a pool sets its time-outs on each session, also after a reconnect" * doctest::skip(!has_server())) {
  EffectDatabase db;
  std::string query =
      "select concat_ws(' ', current_setting('lock_timeout'), current_setting('statement_timeout'), "
      "current_setting('idle_in_transaction_session_timeout'))";
  std::string expected = "3s 7s 11s";
  if (on_mysql()) {
    const bool mariadb = on_mariadb();
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

TEST_CASE("the server ends a statement that runs too long, and this error is transient" * doctest::test_suite("timed") *
          doctest::skip(!ends_long_statements())) {
  EffectDatabase db;
  Pool pool = db.pool(PoolOptions{.connections = 1, .statement_timeout = std::chrono::seconds(1)});
  TxConsumer consumer(pool, "svc");
  const Result result = consumer.consume(order, [](soci::session& sql, Delivery& d) {
    add_effect(sql, d);
    if (d.attempt() == 1) sql << (on_mysql() ? "do sleep(60)" : "select pg_sleep(60)");
  });
  CHECK(result.outcome == Outcome::consumed);
  CHECK(db.effects() == 1);
}

TEST_CASE("a handler that sends nothing for too long loses its key to another consumer" * doctest::test_suite("timed") *
          doctest::skip(!has_server())) {
  EffectDatabase db;
  Pool silent = db.pool(PoolOptions{.connections = 1, .idle_transaction_timeout = std::chrono::seconds(3)});
  TxConsumer sleeper(silent, "svc", {.retry = {.max_runs = 1}});
  Pool pool = db.pool(1);
  TxConsumer other(pool, "svc");
  CHECK_THROWS_AS((void)sleeper.consume(order,
                                        [&](soci::session& sql, Delivery& d) {
                                          add_effect(sql, d);
                                          // The other consumer waits for the key, and gets it when the server ends the
                                          // idle transaction.
                                          CHECK(other.consume(order, add_effect).outcome == Outcome::consumed);
                                        }),
                  soci::soci_error);
  CHECK(db.effects() == 1);
}

}  // namespace
}  // namespace txinbox::test
