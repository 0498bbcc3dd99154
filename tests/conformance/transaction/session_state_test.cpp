// States of a session before and after a consumer uses it. None of them makes the consumer wait forever or
// report a wrong result.

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <soci/sqlite3/soci-sqlite3.h>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/effects.hpp"
#include "support/guard_cases.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using std::chrono::milliseconds;

const Message order{.business_key = "order123"};

TEST_CASE("a lost connection of a caller's session is a transient error, and is not reported as an open transaction" *
          doctest::skip(!has_server())) {
  EffectDatabase db;
  const auto sql = db.session();
  TxConsumer consumer(*sql, "svc");
  kill_connection(*sql, db);
  CHECK(thrown_by([&] { (void)consumer.consume(order, add_effect); }) == "transient");
  CHECK(thrown_by([&] { (void)consumer.consume(order, add_effect); }) == "transient");
  CHECK(thrown_by([&] { Transaction transaction(*sql); }) == "transient");
}

TEST_CASE("after the caller's own deadlock, its session is not reported as inside a transaction" *
          doctest::skip(!deadlock_ends_transaction())) {
  EffectDatabase db;
  prepare_guard_case(db);
  const auto sql = db.session();
  sql->begin();
  *sql << "update pair set n = n + 1 where id = 1";
  const auto other = db.session();
  other->begin();
  *other << "update ballast set n = n + 1";
  *other << "update pair set n = n + 1 where id = 2";
  std::thread crossing([&] { quietly([&] { *other << "update pair set n = n + 1 where id = 1"; }); });
  wait_until_one_waits_for_lock(db);
  CHECK(thrown_by([&] { *sql << "update pair set n = n + 1 where id = 2"; }) == "transient");
  crossing.join();
  other->rollback();
  CHECK(thrown_by([&] { verify(*sql); }) == "nothing");
}

TEST_CASE("with autocommit off, a check that fails leaves no transaction open" *
          doctest::skip(!has_autocommit_setting())) {
  EffectDatabase db;
  const auto sql = db.session();
  *sql << "set autocommit = 0";
  TxConsumer consumer(*sql, "svc");
  db.run("update txinbox_schema set version = -version");
  CHECK(thrown_by([&] { (void)consumer.consume(order, add_effect); }) == "schema_outdated");
  CHECK(thrown_by([&] { Transaction transaction(*sql); }) == "schema_outdated");
  db.run("update txinbox_schema set version = -version");
  CHECK(consumer.consume(order, add_effect).outcome == Outcome::consumed);
}

TEST_CASE("a handler may call a procedure that returns rows" * doctest::skip(!on_mysql())) {
  EffectDatabase db;
  db.run("create procedure returning_rows() begin insert into effect values ('called'); select 1; end");
  const auto call = [](soci::session& s, Delivery&) {
    int one = 0;
    s << "call returning_rows()", soci::into(one);
  };
  Pool pool = db.pool(1);
  TxConsumer pooled(pool, "pooled");
  CHECK(pooled.consume(order, call).outcome == Outcome::consumed);
  const auto sql = db.session();
  TxConsumer own(*sql, "own");
  CHECK(own.consume(order, call).outcome == Outcome::consumed);
  CHECK(own.consume({.business_key = "next"}, add_effect).outcome == Outcome::consumed);
  CHECK(db.effects_of("called") == 2);
}

TEST_CASE("a value cannot become SQL in a session with any character set" * doctest::skip(!on_mysql())) {
  EffectDatabase db;
  Pool pool = open_pool(db.url() + "?charset=gbk", {.connections = 1});
  TxConsumer consumer(pool, "svc");
  const std::string value = "中\\'), ('injected') -- ";
  (void)consumer.consume(order,
                         [&](soci::session& s, Delivery&) { s << "insert into effect values (:v)", soci::use(value); });
  CHECK(db.effects_of("injected") == 0);
  CHECK(db.effects() == 1);
}

TEST_CASE("time-outs and read-only modes that a user changed do not reach the next user") {
  EffectDatabase db;
  const bool mariadb = on_mariadb();
  const std::string change = on_sqlite3()      ? "pragma query_only = 1"
                             : on_postgresql() ? "set default_transaction_read_only = on"
                             : mariadb         ? "set max_statement_time = 0, tx_read_only = 1"
                                               : "set max_execution_time = 0, transaction_read_only = 1";
  const std::string query = on_sqlite3()      ? "select query_only from pragma_query_only"
                            : on_postgresql() ? "select current_setting('default_transaction_read_only')"
                            : mariadb         ? "select concat(@@max_statement_time, ' ', @@tx_read_only)"
                                              : "select concat(@@max_execution_time, ' ', @@transaction_read_only)";
  Pool pool = db.pool(1);
  const auto now = [&] {
    std::string value;
    pool.acquire().session() << query, soci::into(value);
    return value;
  };
  const std::string before = now();
  pool.acquire().session() << change;
  CHECK(now() == before);
  TxConsumer consumer(pool, "svc");
  CHECK(consumer.consume(order, add_effect).outcome == Outcome::consumed);
}

TEST_CASE("a setting that is NULL is restored as NULL" * doctest::skip(!on_mysql())) {
  EffectDatabase db;
  Pool pool = db.pool(
      PoolOptions{.connections = 1, .on_connect = [](soci::session& s) { s << "set character_set_results = NULL"; }});
  TxConsumer consumer(pool, "svc");
  CHECK(consumer.consume(order, add_effect).outcome == Outcome::consumed);
}

TEST_CASE("a pool detects that a user has reconnected a connection, also before its first message") {
  EffectDatabase db;
  int connects = 0;
  Pool pool = db.pool(PoolOptions{.connections = 1, .on_connect = [&](soci::session&) { ++connects; }});
  for (int i = 0; i < 5; ++i) pool.acquire().session().reconnect();
  auto connection = pool.acquire();
  CHECK(connects == 6);
}

TEST_CASE("a handler that reconnects the caller's SQLite session leaves no connection open" *
          doctest::skip(!on_sqlite3())) {
  EffectDatabase db;
  const auto sql = db.session("timeout=0");
  TxConsumer consumer(*sql, "svc", {.retry = {.max_runs = 1}});
  const auto open_files = [&] {
    const std::string file = db.url().substr(std::string("sqlite://").size());
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      count += std::filesystem::read_symlink(entry.path(), gone).string().starts_with(file) ? 1 : 0;
    }
    return count;
  };
  CHECK(consumer.consume({.business_key = "first"}, add_effect).outcome == Outcome::consumed);
  const int before = open_files();
  CHECK(thrown_by([&] { (void)consumer.consume(order, [](soci::session& s, Delivery&) { s.reconnect(); }); }) ==
        "transaction_lost");
  CHECK(consumer.consume(order, add_effect).outcome == Outcome::consumed);
  CHECK(open_files() == before);

  sql->reconnect();  // between two messages
  CHECK(consumer.consume({.business_key = "last"}, add_effect).outcome == Outcome::consumed);
  CHECK(open_files() == before);
  CHECK(db.effects() == 3);
}

TEST_CASE("a handler that reconnects while its own statement exists does not keep the file locked" *
          doctest::skip(!on_sqlite3())) {
  EffectDatabase db;
  Pool pool = db.pool(PoolOptions{.connections = 1, .lock_timeout = milliseconds(300)});
  TxConsumer consumer(pool, "svc", {.retry = {.max_runs = 1}});
  std::unique_ptr<soci::statement> alive;
  CHECK(thrown_by([&] {
          (void)consumer.consume(order, [&](soci::session& s, Delivery& d) {
            add_effect(s, d);
            alive = std::make_unique<soci::statement>((s.prepare << "select count(*) from effect"));
            s.reconnect();
          });
        }) == "transaction_lost");
  CHECK(consumer.consume({.business_key = "next"}, add_effect).outcome == Outcome::consumed);
  CHECK(db.effects() == 1);
}

TEST_CASE("many threads can open a new SQLite file at the same time" * doctest::skip(!on_sqlite3())) {
  for (int round = 0; round < 5; ++round) {
    const TestDatabase db(TestDatabase::Tables::none);
    std::vector<std::string> threw(8);
    std::vector<std::thread> threads;
    for (std::string& each : threw) {
      threads.emplace_back([&] { each = thrown_by([&] { auto pool = open_pool(db.url(), {.connections = 1}); }); });
    }
    for (std::thread& each : threads) each.join();
    CHECK(threw == std::vector<std::string>(8, "nothing"));
  }
}

TEST_CASE("a malformed connection string is refused, and the error does not contain its password" *
          doctest::skip(!on_postgresql())) {
  try {
    auto pool = open_pool("soci:postgresql://dbname=x password=hunter secret2");
    FAIL("the connection string was accepted");
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::invalid_argument);
    CHECK(std::string(e.what()).find("secret2") == std::string::npos);
  }
}

}  // namespace
}  // namespace txinbox::test
