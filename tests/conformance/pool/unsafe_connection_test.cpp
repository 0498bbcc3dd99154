// Connections on which messages could be lost or merged are refused. The error names the remedy.

#include <functional>
#include <string>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"

namespace txinbox::test {
namespace {

const Message order{.business_key = "order123"};

void check_refused(const std::string& remedy, const std::function<void()>& f) {
  try {
    f();
    FAIL("nothing was thrown");
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::unsafe_connection);
    CHECK(std::string(e.what()).find(remedy) != std::string::npos);
    CHECK(action_for(std::current_exception()) == Action::stop);
  }
}

TEST_CASE("a connection that reconnects silently is refused" * doctest::skip(!on_mysql())) {
  EffectDatabase db;
  const auto sql = db.session(" reconnect=1");
  TxConsumer consumer(*sql, "svc");
  check_refused("reconnect=1", [&] { (void)consumer.consume(order, add_effect); });
  check_refused("reconnect=1", [&] { Transaction transaction(*sql); });
  CHECK(db.claims() == 0);
}

TEST_CASE("a session without strict mode is refused, also if strict mode is switched off later" *
          doctest::skip(!on_mysql())) {
  EffectDatabase db;
  const auto sql = db.session();
  TxConsumer consumer(*sql, "svc");
  CHECK(consumer.consume({.business_key = "strict"}, add_effect).outcome == Outcome::consumed);
  *sql << "set sql_mode = ''";
  check_refused("STRICT_ALL_TABLES", [&] { (void)consumer.consume(order, add_effect); });
  check_refused("STRICT_ALL_TABLES", [&] { Transaction transaction(*sql); });
  *sql << "set sql_mode = 'STRICT_TRANS_TABLES'";
  CHECK(consumer.consume(order, add_effect).outcome == Outcome::consumed);
}

TEST_CASE("a pool sets strict mode on its sessions, and refuses an on_connect that switches it off" *
          doctest::skip(!on_mysql())) {
  EffectDatabase db;
  Pool pool = db.pool(1);
  std::string mode;
  pool.acquire().session() << "select @@sql_mode", soci::into(mode);
  CHECK(mode.find("STRICT_ALL_TABLES") != std::string::npos);
  check_refused("STRICT_ALL_TABLES", [&] {
    auto bad = db.pool(PoolOptions{.on_connect = [](soci::session& sql) { sql << "set sql_mode = ''"; }});
  });
}

TEST_CASE("a client encoding other than UTF-8 is refused, also when it is set later" *
          doctest::skip(!on_postgresql())) {
  EffectDatabase db;
  const auto sql = db.session();
  TxConsumer consumer(*sql, "svc");
  CHECK(consumer.consume({.business_key = "utf8"}, add_effect).outcome == Outcome::consumed);
  *sql << "set client_encoding = latin1";
  check_refused("UTF8", [&] { (void)consumer.consume(order, add_effect); });
  check_refused("UTF8", [&] {
    auto bad = db.pool(PoolOptions{.on_connect = [](soci::session& s) { s << "set client_encoding = latin1"; }});
  });
}

TEST_CASE("a server encoding other than UTF-8 is refused" * doctest::skip(!on_postgresql())) {
  const TestDatabase db;
  db.run("create database txinbox_test_latin1 template template0 encoding 'LATIN1' lc_collate 'C' lc_ctype 'C'");
  std::string url = db.url();
  const std::size_t slash = url.rfind('/', url.find('?'));
  url = url.substr(0, slash + 1) + "txinbox_test_latin1";
  check_refused("ENCODING 'UTF8'", [&] { auto pool = open_pool(url, {.connections = 1}); });
  db.run("drop database txinbox_test_latin1");
}

TEST_CASE("an in-memory SQLite database is refused with more than one connection, and works with one" *
          doctest::skip(!on_sqlite3())) {
  check_refused("connections to 1", [] { auto pool = open_pool("sqlite::memory:"); });
  check_refused("connections to 1", [] { auto pool = open_pool("soci:sqlite3://db=:memory:"); });
  Pool pool = open_pool("sqlite::memory:", {.connections = 1});
  {
    auto connection = pool.acquire();
    migrate(connection);
    connection.session() << "create table effect (id text)";
  }
  TxConsumer consumer(pool, "svc");
  CHECK(consumer.consume(order, add_effect).outcome == Outcome::consumed);
  CHECK(consumer.consume(order, add_effect).outcome == Outcome::already_consumed);
}

TEST_CASE("a database without the tables is refused before any handler runs") {
  const TestDatabase db(TestDatabase::Tables::none);
  db.run("create table effect (id varchar(255))");
  Pool pool = db.pool(1);
  const auto sql = db.session();
  TxConsumer pooled(pool, "svc");
  TxConsumer on_session(*sql, "svc");
  for (TxConsumer* consumer : {&pooled, &on_session}) {
    try {
      (void)consumer->consume(order, add_effect);
      FAIL("nothing was thrown");
    } catch (const Error& e) {
      CHECK(e.code() == ErrorCode::schema_missing);
      CHECK(action_for(std::current_exception()) == Action::stop);
    }
  }
  CHECK(db.number("select count(*) from effect") == 0);
  {
    auto connection = pool.acquire();
    migrate(connection);
  }
  CHECK(pooled.consume(order, add_effect).outcome == Outcome::consumed);
  CHECK(on_session.consume(order, add_effect).outcome == Outcome::already_consumed);
}

}  // namespace
}  // namespace txinbox::test
