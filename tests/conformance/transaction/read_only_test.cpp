// The server becomes read-only between the handler and the statement that confirms its claim. At this time, txinbox has
// already released the guard on MariaDB and MySQL.

#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/outcomes.hpp"
#include "support/test_database.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

const Message order{.business_key = "order123"};

/// The test's user may write on a read-only server. So a trigger raises the error of such a server, on a connection
/// that has called `turn_read_only`.
struct ReadOnlyDatabase : EffectDatabase {
  ReadOnlyDatabase() {
    run("create trigger turned_read_only before update on txinbox_consumed_message for each row begin "
        "if @turned_read_only then signal sqlstate 'HY000' set mysql_errno = 1290; end if; end");
  }
};

void turn_read_only(soci::session& sql) { sql << "set @turned_read_only = 1"; }

/// Counts the connections of a pool.
struct CountingPool {
  explicit CountingPool(const EffectDatabase& db)
      : pool(db.pool(PoolOptions{.connections = 1, .on_connect = [this](soci::session&) { ++connects; }})) {}

  int connects = 0;
  Pool pool;
};

TEST_CASE("a server that turns read-only before a claim is confirmed is transient and counts no failure" *
          doctest::skip(!on_mysql())) {
  const ReadOnlyDatabase db;
  for (const bool count_starts : {false, true}) {
    CAPTURE(count_starts);
    CountingPool counting(db);
    TxConsumer consumer(counting.pool, count_starts ? "counting" : "plain",
                        {.max_attempts = 1, .count_starts = count_starts});
    const Result result = consumer.consume(order, [](soci::session& sql, Delivery& d) {
      add_effect(sql, d);
      if (d.attempt() == 1) turn_read_only(sql);
    });
    CHECK(result.outcome == consumed);
    CHECK(counting.connects == 2);
  }
  CHECK(db.effects() == 2);
  CHECK(db.number("select count(*) from txinbox_failed_message") == 0);
}

TEST_CASE("on a session of the caller, a server that turns read-only before the confirmation is reported as read_only" *
          doctest::skip(!on_mysql())) {
  const ReadOnlyDatabase db;
  const auto sql = db.session();
  TxConsumer consumer(*sql, "svc", {.max_attempts = 1});
  std::string what;
  try {
    (void)consumer.consume(order, [](soci::session& s, Delivery& d) {
      add_effect(s, d);
      turn_read_only(s);
    });
  } catch (...) {
    what = error_class(std::current_exception());
  }
  CHECK(what == "read_only");
  *sql << "set @turned_read_only = null";
  CHECK(consumer.consume(order, add_effect).outcome == consumed);
  CHECK(db.effects() == 1);
}

TEST_CASE("a server that turns read-only before a message of a batch is confirmed is transient" *
          doctest::skip(!on_mysql())) {
  const ReadOnlyDatabase db;
  CountingPool counting(db);
  TxConsumer consumer(counting.pool, "svc", {.max_attempts = 1});
  const auto results = consumer.consume_batch(
      messages_of({"bad", "good", "last"}),
      [](soci::session& sql, Delivery& d) {
        add_effect(sql, d);
        if (d.message().business_key == "bad") throw std::runtime_error("so that the batch runs with savepoints");
        if (d.message().business_key == "good" && d.attempt() == 1) turn_read_only(sql);
      },
      OnFailure::skip);
  CHECK(outcomes(results) == Outcomes{Outcome::parked, consumed, consumed});
  CHECK(counting.connects == 2);
  CHECK(db.effects() == 2);
}

TEST_CASE("a torn claim that a read-only server cannot mark is marked on another connection" *
          doctest::skip(!on_mysql())) {
  const ReadOnlyDatabase db;
  CountingPool counting(db);
  int torn = 0;
  TxConsumer consumer(
      counting.pool, "svc",
      {.listeners = {on_event([&](const Event& event) { torn += event.type == EventType::torn ? 1 : 0; })}});
  CHECK(thrown_by([&] {
          (void)consumer.consume(order, [](soci::session& sql, Delivery& d) {
            add_effect(sql, d);
            sql << "commit";
            turn_read_only(sql);
          });
        }) == "transaction_lost");
  CHECK(counting.connects == 2);
  CHECK(torn == 1);
}

}  // namespace
}  // namespace txinbox::test
