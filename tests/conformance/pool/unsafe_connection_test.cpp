// Connections on which messages could be lost or merged are refused. The error names the remedy.

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/effects.hpp"

namespace txinbox::test {
namespace {

const Message order{.business_key = "order123"};
const Message other{.business_key = "order124"};

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
  check_refused("STRICT_ALL_TABLES", [&] { (void)consumer.consume(other, add_effect); });
  check_refused("STRICT_ALL_TABLES", [&] { (void)consumer.consume_batch({{order, other}}, add_effect); });
  CHECK(db.claims() == 1);
  *sql << "lock tables effect read";
  check_refused("STRICT_ALL_TABLES", [&] { (void)consumer.consume(other, add_effect); });
  CHECK_THROWS(*sql << "select count(*) from txinbox_consumed_message");  // the service still has its lock
  *sql << "unlock tables";
  *sql << "set sql_mode = 'STRICT_TRANS_TABLES'";
  CHECK(consumer.consume(order, add_effect).outcome == Outcome::consumed);
}

TEST_CASE("a session that switches its journal off is refused at the next message, and again after it is on" *
          doctest::skip(!on_sqlite3())) {
  EffectDatabase db;
  const auto sql = db.session();
  TxConsumer consumer(*sql, "svc");
  CHECK(consumer.consume({.business_key = "with-journal"}, add_effect).outcome == Outcome::consumed);
  *sql << "pragma journal_mode = off";
  check_refused("journal_mode = WAL", [&] { (void)consumer.consume(order, add_effect); });
  check_refused("journal_mode = WAL", [&] { Transaction transaction(*sql); });
  check_refused("journal_mode = WAL", [&] { (void)consumer.consume_batch({{order, other}}, add_effect); });
  CHECK(db.claims() == 1);
  *sql << "pragma journal_mode = wal";
  CHECK(consumer.consume(order, add_effect).outcome == Outcome::consumed);
}

// With a shared cache, a session can read what another one has not committed.
TEST_CASE("a duplicate is never read from a transaction that is still open" * doctest::skip(!on_sqlite3())) {
  EffectDatabase db;
  const auto open = [&] { return db.session("shared_cache=true timeout=0"); };
  const auto sql = open();
  const auto writer = open();
  TxConsumer consumer(*sql, "svc", {.retry = {.max_runs = 1}});
  CHECK(consumer.consume(other, add_effect).outcome == Outcome::consumed);
  for (int i = 0; i < 4; ++i) CHECK(consumer.consume(other, add_effect).outcome == Outcome::already_consumed);
  *sql << "pragma read_uncommitted = 1";
  *writer << "begin immediate";
  *writer << "insert into txinbox_consumed_message (consumer, business_key, state, attempt_token) values "
             "('svc', 'order123', 'consumed', zeroblob(16))";
  CHECK_THROWS((void)consumer.consume(order, add_effect));
  writer->rollback();
  CHECK(consumer.consume(order, add_effect).outcome == Outcome::consumed);
}

TEST_CASE("what the service changes on its session between two messages is seen, and stays" *
          doctest::skip(!on_mysql())) {
  EffectDatabase db;
  const auto sql = db.session();
  TxConsumer consumer(*sql, "svc");
  int keys = 0;
  const auto consume_all = [&] {
    const std::string name = "key" + std::to_string(++keys);
    CHECK(consumer.consume({.business_key = name}, add_effect).outcome == Outcome::consumed);
    CHECK(consumer.consume({.business_key = name}, add_effect).outcome == Outcome::already_consumed);
    const std::vector<Message> batch{{.business_key = name + "a"}, {.business_key = name + "b"}};
    for (const Result& each : consumer.consume_batch(batch, add_effect)) CHECK(each.outcome == Outcome::consumed);
    for (const Result& each : consumer.consume_batch(batch, add_effect)) {
      CHECK(each.outcome == Outcome::already_consumed);
    }
    CHECK(db.effects() == 3LL * keys);
  };
  const auto setting = [&](const std::string& name) {
    std::string value;
    *sql << "select @@" + name, soci::into(value);
    return value;
  };
  consume_all();
  *sql << "set autocommit = 0";
  consume_all();
  CHECK(setting("autocommit") == "0");
  sql->rollback();
  *sql << "set autocommit = 1";
  consume_all();
  CHECK(setting("autocommit") == "1");
  if (on_mariadb()) {
    *sql << "set sql_mode = 'ORACLE,STRICT_ALL_TABLES'";  // a block has another syntax then
    consume_all();
    *sql << "set sql_mode = 'ANSI,STRICT_ALL_TABLES'";
    consume_all();
    CHECK(setting("sql_mode").find("ANSI_QUOTES") != std::string::npos);
  }
}

TEST_CASE("a transaction that an error has left open is refused, although the client does not know of it" *
          doctest::skip(!on_mariadb())) {
  EffectDatabase db;
  const auto sql = db.session();
  TxConsumer consumer(*sql, "svc");
  CHECK(consumer.consume(order, add_effect).outcome == Outcome::consumed);
  const auto leave_open = [&] {
    CHECK_THROWS(*sql << "begin not atomic start transaction; insert into effect values ('of the service'); "
                         "signal sqlstate '45000'; end");
  };
  const auto is_refused = [&](const std::function<void()>& consume) {
    try {
      consume();
      return false;
    } catch (const Error& error) {
      return error.code() == ErrorCode::transaction_open;
    }
  };
  leave_open();
  CHECK(is_refused([&] { (void)consumer.consume(other, add_effect); }));
  CHECK(is_refused([&] { (void)consumer.consume_batch({{order, other}}, add_effect); }));
  sql->rollback();
  CHECK(db.effects() == 1);
  leave_open();
  CHECK(is_refused([&] { (void)consumer.consume_batch({{order, other}}, add_effect); }));
  sql->commit();
  CHECK(db.effects() == 2);
}

TEST_CASE("an unsafe connection that a handler opens itself fails only its message of a batch") {
  EffectDatabase db;
  Pool pool = db.pool(1);
  const auto sql = db.session();
  TxConsumer pooled(pool, "pooled");
  TxConsumer own(*sql, "own");
  for (TxConsumer* consumer : {&pooled, &own}) {
    const auto results = consumer->consume_batch(
        {{order, other}},
        [](soci::session& session, Delivery& delivery) {
          if (delivery.message().business_key == order.business_key) {
            throw Error(ErrorCode::unsafe_connection, "of another connection");
          }
          add_effect(session, delivery);
        },
        OnFailure::skip);
    CHECK(results[0].outcome == Outcome::failed);
    CHECK(results[1].outcome == Outcome::consumed);
  }
}

TEST_CASE("a handler that changes the settings of the service's session does not fail its message" *
          doctest::skip(!on_mariadb())) {
  EffectDatabase db;
  const auto sql = db.session();
  TxConsumer consumer(*sql, "svc");
  const auto change = [](soci::session& session, Delivery& delivery) {
    add_effect(session, delivery);
    session << "set sql_mode = 'ORACLE,STRICT_ALL_TABLES'";
  };
  for (int i = 0; i < 2; ++i) {
    *sql << "set sql_mode = 'STRICT_ALL_TABLES'";
    CHECK(consumer.consume({.business_key = "key" + std::to_string(i)}, change).outcome == Outcome::consumed);
  }
  CHECK_THROWS((void)consumer.consume({.business_key = "failing"}, [&](soci::session& session, Delivery& delivery) {
    change(session, delivery);
    throw std::runtime_error("the handler fails");
  }));
  CHECK(db.effects() == 2);
  CHECK(db.claims() == 2);

  // One message fails, so the others run in savepoints.
  *sql << "set sql_mode = 'STRICT_ALL_TABLES'";
  const auto results = consumer.consume_batch(
      {{order, other}},
      [&](soci::session& session, Delivery& delivery) {
        change(session, delivery);
        if (delivery.message().business_key == order.business_key) throw std::runtime_error("the handler fails");
      },
      OnFailure::skip);
  CHECK(results[0].outcome == Outcome::failed);
  CHECK(results[1].outcome == Outcome::consumed);
  CHECK(db.effects() == 3);
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
