// Lost connections, lost replies, deadlocks and locks: the transaction runs again, and takes effect once.

#include <atomic>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/effects.hpp"
#include "support/guard_cases.hpp"
#include "support/mysql_sessions.hpp"
#include "support/proxy.hpp"

namespace txinbox::test {
namespace {

using std::chrono::milliseconds;

const Message order{.business_key = "order123"};

TEST_CASE("a connection that is killed while it waits for a key is replaced" * doctest::skip(!has_server())) {
  EffectDatabase db;
  Pool pool = db.pool(3);
  TxConsumer consumer(pool, "svc");
  std::atomic<long long> waiting_id = 0;

  const auto holder = db.session();
  Transaction holding(*holder);
  CHECK(holding.claim("svc", order) == Claim::claimed);

  std::atomic<int> retries = 0;
  Pool waiting_pool = db.pool(PoolOptions{.connections = 1, .on_connect = [&](soci::session& sql) {
                                            long long id = 0;
                                            sql << (on_mysql() ? "select connection_id()" : "select pg_backend_pid()"),
                                                soci::into(id);
                                            waiting_id = id;
                                          }});
  TxConsumer waiting(waiting_pool, "svc", {.listeners = {on_event([&](const Event& e) {
                                             if (e.type == EventType::retry) {
                                               ++retries;
                                               holding.rollback();
                                             }
                                           })}});
  std::thread killer([&] {
    // Waits until the server reports that the connection waits for a lock.
    const std::string waits = on_mysql()
                                  ? "select count(*) from " + sessions_waiting_for_lock() + " w where id = "
                                  : "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and pid = ";
    // InnoDB on MariaDB answers from a cache if it is asked again within 100 ms.
    while (db.number(waits + std::to_string(waiting_id)) == 0) std::this_thread::sleep_for(milliseconds(150));
    db.run((on_mysql() ? "kill " : "select pg_terminate_backend(") + std::to_string(waiting_id) +
           (on_mysql() ? "" : ")"));
  });
  CHECK(waiting.consume(order, add_effect).outcome == Outcome::consumed);
  killer.join();
  CHECK(retries == 1);
  CHECK(db.effects() == 1);
}

TEST_CASE("a lost caller's session is not reconnected: consume throws the error, and leaves no rows" *
          doctest::skip(!has_server())) {
  EffectDatabase db;
  const auto sql = db.session();
  TxConsumer consumer(*sql, "svc");
  int runs = 0;
  try {
    (void)consumer.consume(order, [&](soci::session& s, Delivery& d) {
      ++runs;
      add_effect(s, d);
      kill_connection(s, db);
    });
    FAIL("nothing was thrown");
  } catch (const soci::soci_error&) {
    CHECK(is_transient(std::current_exception()));
    CHECK(action_for(std::current_exception()) == Action::redeliver);
  }
  CHECK(runs == 1);
  CHECK(db.effects() == 0);
  CHECK(db.claims() == 0);
}

TEST_CASE("a commit whose reply is lost is recognized as committed, and does not run again" *
          doctest::skip(!has_server())) {
  EffectDatabase db;
  Proxy proxy(db.url());
  Pool pool = open_pool(proxy.url(), {.connections = 1});
  int runs = 0;
  TxConsumer consumer(pool, "svc");
  const Result result = consumer.consume(order, [&](soci::session& sql, Delivery& d) {
    ++runs;
    add_effect(sql, d);
    d.store("receipt");
    proxy.lose_reply();
  });
  CHECK(proxy.lost() == 1);
  CHECK(runs == 1);
  CHECK(result.outcome == Outcome::consumed);
  CHECK(result.stored == "receipt");
  CHECK(db.effects() == 1);
}

TEST_CASE("a claim whose reply is lost is rolled back by the server, and runs again" * doctest::skip(!has_server())) {
  EffectDatabase db;
  Proxy proxy(db.url());
  Pool pool = open_pool(proxy.url(), {.connections = 1});
  TxConsumer consumer(pool, "svc");
  (void)consumer.consume({.business_key = "warm"}, add_effect);
  proxy.lose_reply();
  CHECK(consumer.consume(order, add_effect).outcome == Outcome::consumed);
  CHECK(proxy.lost() == 1);
  CHECK(db.effects_of("order123") == 1);
}

TEST_CASE("the claim of a handler that committed and then lost its connection does not count as consumed" *
          doctest::skip(pool_refuses_foreign_commit())) {
  EffectDatabase db;
  Pool pool = db.pool(2);
  for (const bool retries : {true, false}) {
    CAPTURE(retries);
    const Message message{.business_key = retries ? "with" : "without"};
    TxConsumer consumer(pool, "svc", {.retry = {.max_runs = retries ? 5 : 1}});
    const auto tear = [&](soci::session& sql, Delivery& d) {
      add_effect(sql, d);
      sql.commit();
      kill_connection(sql, db);
      add_effect(sql, d);
    };
    try {
      const Result result = consumer.consume(message, tear);
      CHECK(result.outcome == Outcome::parked);
    } catch (const soci::soci_error&) {
      CHECK(!retries);
    }
    CHECK(db.text("select state from txinbox_consumed_message where business_key = '" + message.business_key + "'") ==
          "torn");
    CHECK(consumer.consume(message, add_effect).outcome == Outcome::parked);
  }
}

TEST_CASE("two messages whose handlers deadlock with each other are both consumed once" * doctest::skip(one_writer())) {
  EffectDatabase db;
  db.run("create table pair (id integer primary key, n integer not null)");
  db.run("insert into pair values (1, 0), (2, 0)");
  Pool pool = db.pool(4);
  std::atomic<int> retried = 0;
  std::atomic<int> inside = 0;
  TxConsumer consumer(pool, "svc", {.retry = {.max_runs = 20}, .listeners = {on_event([&](const Event& e) {
                                                                 if (e.type == EventType::retry) ++retried;
                                                               })}});
  const auto cross = [&](int first, int second) {
    return [&, first, second](soci::session& sql, Delivery& d) {
      add_effect(sql, d);
      sql << "update pair set n = n + 1 where id = " << first;
      ++inside;
      while (d.attempt() == 1 && inside < 2) std::this_thread::sleep_for(milliseconds(5));
      sql << "update pair set n = n + 1 where id = " << second;
    };
  };
  std::thread other([&] { CHECK(consumer.consume({.business_key = "b"}, cross(2, 1)).outcome == Outcome::consumed); });
  CHECK(consumer.consume({.business_key = "a"}, cross(1, 2)).outcome == Outcome::consumed);
  other.join();
  CHECK(retried >= 1);
  CHECK(db.effects() == 2);
  CHECK(db.number("select sum(n) from pair") == 4);
}

TEST_CASE("an error that remains after the last allowed run is thrown unchanged") {
  EffectDatabase db;
  db.run("create table pair (id integer primary key, n integer not null)");
  db.run("insert into pair values (1, 0)");
  Pool pool = db.pool(PoolOptions{.connections = 1, .lock_timeout = milliseconds(1)});
  const auto holder = db.session();
  holder->begin();
  *holder << "update pair set n = 1";

  int retries = 0;
  TxConsumer consumer(pool, "svc",
                      {.retry = {.max_runs = 2, .initial_backoff = milliseconds(1)},
                       .listeners = {on_event([&](const Event& e) {
                         if (e.type != EventType::retry) return;
                         ++retries;
                         CHECK(is_transient(e.error));
                         auto free = pool.acquire();  // no connection is held during the backoff
                       })}});
  try {
    (void)consumer.consume(order, [&](soci::session& sql, Delivery& d) {
      add_effect(sql, d);
      sql << "update pair set n = 2";
    });
    FAIL("nothing was thrown");
  } catch (const soci::soci_error&) {
    CHECK(is_transient(std::current_exception()));
  }
  CHECK(retries == 1);
  holder->rollback();
  CHECK(db.effects() == 0);
  CHECK(consumer.consume(order, add_effect).outcome == Outcome::consumed);
}

TEST_CASE("an error that is not transient is not retried") {
  EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  int runs = 0;
  CHECK_THROWS_AS((void)consumer.consume(order,
                                         [&](soci::session& sql, Delivery&) {
                                           ++runs;
                                           sql << "insert into no_such_table values (1)";
                                         }),
                  soci::soci_error);
  CHECK(runs == 1);
  CHECK(consumer.consume(order, add_effect).outcome == Outcome::consumed);
}

TEST_CASE("the stop token ends the backoff, and consume throws the error of the last run") {
  EffectDatabase db;
  std::stop_source stop;
  Pool pool = db.pool(PoolOptions{.connections = 1, .lock_timeout = milliseconds(1)});
  TxConsumer consumer(pool, "svc",
                      {.retry = {.initial_backoff = std::chrono::hours(1),
                                 .max_backoff = std::chrono::hours(1),
                                 .max_elapsed = std::chrono::hours(1)},
                       .stop = stop.get_token(),
                       .listeners = {on_event([&](const Event& e) {
                         if (e.type == EventType::retry) stop.request_stop();
                       })}});
  db.run("create table pair (id integer primary key)");
  db.run("insert into pair values (1)");
  const auto holder = db.session();
  holder->begin();
  *holder << "update pair set id = 1";
  try {
    (void)consumer.consume(order, [](soci::session& sql, Delivery&) { sql << "update pair set id = 1"; });
    FAIL("nothing was thrown");
  } catch (const soci::soci_error&) {
    CHECK(is_transient(std::current_exception()));
  }
  holder->rollback();
  try {
    (void)consumer.consume(order, add_effect);
    FAIL("nothing was thrown");
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::stopped);
  }
  CHECK(db.claims() == 0);
}

TEST_CASE("an error at COMMIT leaves neither the claim nor the handler's rows" * doctest::skip(!defers_constraints())) {
  EffectDatabase db;
  db.run("create table parent (id integer primary key)");
  db.run("create table child (id integer references parent(id) deferrable initially deferred)");
  for (const bool pooled : {true, false}) {
    Pool pool = db.pool(1);
    const auto sql = db.session();
    if (on_sqlite3()) *sql << "pragma foreign_keys = on";
    TxConsumer consumer = pooled ? TxConsumer(pool, "svc") : TxConsumer(*sql, "svc");
    CHECK_THROWS_AS(
        (void)consumer.consume(order, [](soci::session& s, Delivery&) { s << "insert into child values (7)"; }),
        soci::soci_error);
    CHECK(db.claims() == 0);
    CHECK(db.number("select count(*) from child") == 0);
    CHECK(consumer.consume({.business_key = pooled ? "p" : "s"}, add_effect).outcome == Outcome::consumed);
    db.run("delete from txinbox_consumed_message");
  }
}

}  // namespace
}  // namespace txinbox::test
