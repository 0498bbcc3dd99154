// Lost replies, lost connections and locks in the middle of a batch: each message takes effect once, and the results
// are correct.

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/effects.hpp"
#include "support/guard_cases.hpp"
#include "support/outcomes.hpp"
#include "support/proxy.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using std::chrono::milliseconds;

const auto five = messages_of({"d", "a", "c", "e", "b"});
const Outcomes all_consumed(5, consumed);

void check_all_once(const EffectDatabase& db) {
  for (const Message& each : five) CHECK(db.effects_of(each.business_key) == 1);
  CHECK(db.claims() == 5);
}

TEST_CASE("a batch whose commit reply is lost has taken effect once" * doctest::skip(!has_server())) {
  EffectDatabase db;
  Proxy proxy(db.url());
  Pool pool = open_pool(proxy.url(), {.connections = 1});
  TxConsumer consumer(pool, "svc");
  int runs = 0;
  const auto results = consumer.consume_batch(five, [&](soci::session& sql, Delivery& d) {
    ++runs;
    add_effect(sql, d);
    if (d.index() == 1) d.store("receipt");
    // On MySQL three statements come before the COMMIT: the release of the savepoint and two confirmations.
    if (d.index() == 4) proxy.lose_reply(has_procedures() ? 3 : 0);
  });
  CHECK(proxy.lost() == 1);
  CHECK(runs == 5);
  CHECK(outcomes(results) == all_consumed);
  CHECK(results[1].stored == "receipt");
  check_all_once(db);
}

TEST_CASE("a lost reply in a batch with savepoints: the failed message fails, and the others are consumed once" *
          doctest::skip(!has_server())) {
  EffectDatabase db;
  Proxy proxy(db.url());
  Pool pool = open_pool(proxy.url(), {.connections = 1});
  TxConsumer consumer(pool, "svc");
  const auto messages = messages_of({"bad", "b", "a"});
  const auto results = consumer.consume_batch(
      messages,
      [&](soci::session& sql, Delivery& d) {
        add_effect(sql, d);
        if (d.index() == 0) throw HandlersOwnError("a failure of the handler");
        // The replies for this message's savepoint arrive. On MySQL these are two, and the release of the guard is a
        // third.
        if (d.index() == 2) proxy.lose_reply(has_procedures() ? 3 : 1);
      },
      OnFailure::skip);
  CHECK(proxy.lost() == 1);
  CHECK(outcomes(results) == Outcomes{failed, consumed, consumed});
  CHECK_THROWS_AS(std::rethrow_exception(results[0].error), HandlersOwnError);
  CHECK(db.effects() == 2);
  CHECK(db.claims() == 2);
}

TEST_CASE("claims whose reply is lost are rolled back by the server, and the batch runs again" *
          doctest::skip(!has_server())) {
  EffectDatabase db;
  Proxy proxy(db.url());
  Pool pool = open_pool(proxy.url(), {.connections = 1});
  TxConsumer consumer(pool, "svc");
  (void)consumer.consume({.business_key = "warm"}, add_effect);
  db.run("delete from txinbox_consumed_message");
  proxy.lose_reply();
  CHECK(outcomes(consumer.consume_batch(five, add_effect)) == all_consumed);
  CHECK(proxy.lost() == 1);
  check_all_once(db);
}

TEST_CASE("a connection that is killed in any handler of a batch is replaced, and each message takes effect once" *
          doctest::skip(!has_server())) {
  for (const std::size_t victim : {0UL, 2UL, 4UL}) {
    for (const bool before : {true, false}) {
      for (const OnFailure mode : {OnFailure::stop, OnFailure::skip}) {
        CAPTURE(victim);
        CAPTURE(before);
        EffectDatabase db;
        Pool pool = db.pool(2);
        std::string heard;
        TxConsumer consumer(
            pool, "svc",
            {.listeners = {on_event([&](const Event& e) { heard.append(to_string(e.type)).append(" "); })}});
        const Handler handler = [&](soci::session& sql, Delivery& d) {
          const bool kill = d.index() == victim && d.attempt() == 1;
          if (kill && before) kill_connection(sql, db);
          add_effect(sql, d);
          if (kill && !before) kill_connection(sql, db);
        };
        CHECK(outcomes(consumer.consume_batch(five, handler, mode)) == all_consumed);
        CHECK(heard == "retry consumed consumed consumed consumed consumed ");
        check_all_once(db);
      }
    }
  }
}

/// A row that another session keeps locked, and a handler that needs it for the message "hot".
struct HotRow {
  EffectDatabase db;
  Pool pool = db.pool(PoolOptions{.connections = 1, .lock_timeout = milliseconds(1)});
  std::unique_ptr<soci::session> holder = db.session();

  HotRow() {
    db.run("create table hot (id integer primary key, n integer not null)");
    db.run("insert into hot values (1, 0)");
    if (one_writer()) return;  // SQLite has one writer, so the handler itself throws the error
    holder->begin();
    *holder << "update hot set n = 1";
  }

  Handler handler() const {
    return [](soci::session& sql, Delivery& d) {
      add_effect(sql, d);
      if (d.message().business_key != "hot") return;
      if (one_writer()) throw_busy();
      if (on_mariadb()) sql << "set innodb_lock_wait_timeout = 0";  // MySQL waits for one second
      sql << "update hot set n = n + 1";
    };
  }

 private:
  /// Throws a real error of SQLite, from another database.
  static void throw_busy() {
    const TestDatabase other(TestDatabase::Tables::none);
    const auto first = other.session();
    const auto second = other.session();
    *second << "pragma busy_timeout = 0";
    *first << "begin immediate";
    *second << "begin immediate";
  }
};

TEST_CASE("with skip, a lock that is not released fails only the message that waits for it") {
  HotRow row;
  TxConsumer consumer(row.pool, "svc", {.retry = {.max_runs = 2, .initial_backoff = milliseconds(1)}});
  const auto messages = messages_of({"d", "hot", "c", "a"});
  const auto results = consumer.consume_batch(messages, row.handler(), OnFailure::skip);
  CHECK(outcomes(results) == Outcomes{consumed, failed, consumed, consumed});
  CHECK(is_transient(results[1].error));
  CHECK(row.db.effects() == 3);
  CHECK(row.db.claims() == 3);
  row.holder.reset();
  CHECK(outcomes(consumer.consume_batch(messages, add_effect)) == Outcomes{duplicate, consumed, duplicate, duplicate});
}

TEST_CASE("with stop, a lock that is not released leaves exactly the messages before it consumed") {
  HotRow row;
  TxConsumer consumer(row.pool, "svc", {.retry = {.max_runs = 1}});
  const auto results = consumer.consume_batch(messages_of({"d", "c", "hot", "a"}), row.handler());
  CHECK(outcomes(results) == Outcomes{consumed, consumed, failed, not_run});
  CHECK(is_transient(results[2].error));
  CHECK(row.db.effects() == 2);
  CHECK(row.db.claims() == 2);
}

TEST_CASE("a lock that is released in time fails no message") {
  HotRow row;
  int retries = 0;
  TxConsumer consumer(row.pool, "svc",
                      {.retry = {.initial_backoff = milliseconds(1)}, .listeners = {on_event([&](const Event& e) {
                                                                        if (e.type != EventType::retry) return;
                                                                        ++retries;
                                                                        if (!one_writer()) row.holder->rollback();
                                                                      })}});
  const Handler handler = [&](soci::session& sql, Delivery& d) {
    if (one_writer() && d.attempt() > 1) return add_effect(sql, d);
    row.handler()(sql, d);
  };
  CHECK(outcomes(consumer.consume_batch(messages_of({"d", "hot", "a"}), handler)) ==
        Outcomes{consumed, consumed, consumed});
  CHECK(retries >= 1);
  CHECK(row.db.effects() == 3);
}

TEST_CASE("two batches whose handlers deadlock with each other are both consumed once" * doctest::skip(one_writer())) {
  EffectDatabase db;
  db.run("create table pair (id integer primary key, n integer not null)");
  db.run("insert into pair values (1, 0), (2, 0)");
  Pool pool = db.pool(4);
  std::atomic<int> retried = 0;
  std::atomic<int> inside = 0;
  TxConsumer consumer(pool, "svc", {.retry = {.max_runs = 20}, .listeners = {on_event([&](const Event& e) {
                                                                 if (e.type == EventType::retry) ++retried;
                                                               })}});
  const auto cross = [&](std::size_t first_row) {
    return [&, first_row](soci::session& sql, Delivery& d) {
      add_effect(sql, d);
      sql << "update pair set n = n + 1 where id = " << (d.index() == 0 ? first_row : 3 - first_row);
      if (d.index() == 0) ++inside;
      while (d.index() == 0 && d.attempt() == 1 && inside < 2) std::this_thread::sleep_for(milliseconds(5));
    };
  };
  std::thread other([&] {
    CHECK(outcomes(consumer.consume_batch(messages_of({"y", "x"}), cross(2))) == Outcomes{consumed, consumed});
  });
  CHECK(outcomes(consumer.consume_batch(messages_of({"b", "a"}), cross(1))) == Outcomes{consumed, consumed});
  other.join();
  CHECK(retried >= 1);
  CHECK(db.effects() == 4);
  CHECK(db.number("select sum(n) from pair") == 4);
}

TEST_CASE("if the database stays unavailable, the first message fails, the others are not run, and nothing is thrown" *
          doctest::skip(!has_server())) {
  for (const OnFailure mode : {OnFailure::stop, OnFailure::skip}) {
    EffectDatabase db;
    std::optional<Proxy> proxy(std::in_place, db.url());
    Pool pool = open_pool(proxy->url(), {.connections = 1});
    TxConsumer consumer(pool, "svc", {.retry = {.max_runs = 3, .initial_backoff = milliseconds(1)}});
    const auto results = consumer.consume_batch(
        five,
        [&](soci::session& sql, Delivery& d) {
          if (d.index() == 2) proxy.reset();
          add_effect(sql, d);
        },
        mode);
    CHECK(outcomes(results) == Outcomes{failed, not_run, not_run, not_run, not_run});
    CHECK(is_transient(results[0].error));
    CHECK(action_for(results[0]) == Action::redeliver);
    CHECK(db.effects() == 0);
    CHECK(db.claims() == 0);

    // If no statement could be sent, consume_batch throws.
    CHECK(thrown_by([&] { (void)consumer.consume_batch(five, add_effect, mode); }) == "transient");
    Pool direct = db.pool(1);
    CHECK(outcomes(TxConsumer(direct, "svc").consume_batch(five, add_effect, mode)) == all_consumed);
    check_all_once(db);
  }
}

TEST_CASE("messages that were committed before the database became unavailable are reported as consumed" *
          doctest::skip(!has_server())) {
  EffectDatabase db;
  std::optional<Proxy> proxy(std::in_place, db.url());
  Pool pool = open_pool(proxy->url(), {.connections = 1});
  TxConsumer consumer(pool, "svc", {.retry = {.max_runs = 1}});
  // The deadlock divides the batch, so that its first half commits separately.
  const auto results = consumer.consume_batch(messages_of({"d", "a", "c", "b"}), [&](soci::session& sql, Delivery& d) {
    if (d.index() == 2 && d.attempt() == 2) proxy.reset();
    add_effect(sql, d);
    if (d.index() == 2 && on_mysql()) sql << "signal sqlstate '40001' set mysql_errno = 1213";
    if (d.index() == 2 && on_postgresql()) sql << "do $$ begin raise sqlstate '40P01'; end $$";
  });
  CHECK(outcomes(results) == Outcomes{consumed, consumed, failed, not_run});
  CHECK(db.effects() == 2);
  CHECK(db.claims() == 2);
}

TEST_CASE("with one attempt, a lost connection fails the first message, and a redelivery consumes all" *
          doctest::skip(!has_server())) {
  EffectDatabase db;
  Pool pool = db.pool(2);
  TxConsumer consumer(pool, "svc", {.retry = {.max_runs = 1}});
  const auto results = consumer.consume_batch(
      five,
      [&](soci::session& sql, Delivery& d) {
        if (d.index() == 3) kill_connection(sql, db);
        add_effect(sql, d);
      },
      OnFailure::skip);
  CHECK(outcomes(results) == Outcomes{failed, not_run, not_run, not_run, not_run});
  CHECK(db.effects() == 0);
  CHECK(outcomes(consumer.consume_batch(five, add_effect)) == all_consumed);
  check_all_once(db);
}

}  // namespace
}  // namespace txinbox::test
