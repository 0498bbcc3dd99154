// Which rows a purge removes, and which rows it leaves.

#include <chrono>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/old_rows.hpp"
#include "support/outcomes.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

/// Purges on a plain session.
std::size_t purge_of(const TestDatabase& db, std::chrono::seconds older_than, const PurgeOptions& options = {}) {
  return purge(*db.session(), older_than, options);
}

TEST_CASE("a purge removes only rows that are older than the limit") {
  const OldRows db;
  db.add("svc", 3, 25h);
  db.add("svc", 4, 23h);
  CHECK(purge_of(db, 24h) == 3);
  CHECK(db.claims() == 4);
  CHECK(purge_of(db, 24h) == 0);
}

TEST_CASE("a purge removes only consumed rows") {
  for (const char* state : {"consuming", "parked", "torn", "discarded", "unheard-of"}) {
    CAPTURE(state);
    const OldRows db;
    db.add("svc", 2, 25h, state);
    db.add("svc", 1, 25h);
    CHECK(purge_of(db, 1h) == 1);
    CHECK(db.claims_in(state) == 2);
  }
}

TEST_CASE("a purge of one consumer removes no other consumer's rows") {
  const OldRows db;
  for (const char* consumer : {"a", "b", "A", "a "}) db.add(consumer, 5, 25h);
  CHECK(purge_of(db, 1h, {.consumer = "a"}) == 5);
  CHECK(db.claims() == 15);
  CHECK(db.claims_of("a") == 0);
  CHECK(purge_of(db, 1h) == 15);
}

TEST_CASE("a purge finds the few rows of one consumer among the many rows of another") {
  const OldRows db;
  db.add("many", 3'000, 26h);
  db.add("few", 7, 25h);
  db.add("many", 3'000, 24h);
  CHECK(purge_of(db, 1h, {.consumer = "few", .batch_size = 10}) == 7);
  CHECK(db.claims() == 6'000);
}

TEST_CASE("a purge with small batches removes all of the many rows that have the same time") {
  const OldRows db;
  db.add_at_once("svc", 500, 25h);
  db.add_at_once("other", 500, 25h);
  CHECK(purge_of(db, 1h, {.consumer = "svc", .batch_size = 7, .duty = 1}) == 500);
  CHECK(db.claims_of("other") == 500);
}

TEST_CASE("a purge removes keys of any bytes") {
  const OldRows db;
  Pool pool = db.pool(1);
  const std::vector<std::string> keys = {"'",   "\\", "\"", "%", ":a", "\xF0\x9F\x98\x80", std::string(255, 'k'),
                                         " x ", "x"};
  (void)TxConsumer(pool, "it's").consume_batch(messages_of(keys), [](soci::session&, Delivery&) {});
  db.age_all(25h);
  CHECK(purge(pool.acquire(), 24h, {.consumer = "it's"}) == keys.size());
  CHECK(db.claims() == 0);
}

TEST_CASE("a batch removes no more rows than its size, and an event reports each batch") {
  const OldRows db;
  db.add("svc", 450, 25h);
  std::size_t told = 0;
  std::size_t largest = 0;
  const auto observer = [&](const Event& event) {
    CHECK(event.type == EventType::purged);
    CHECK(event.consumer == "svc");
    CHECK(event.duration > 0ns);
    told += event.rows;
    largest = std::max(largest, event.rows);
    throw std::runtime_error("the purge ignores this");
  };
  CHECK(purge_of(db, 1h, {.consumer = "svc", .batch_size = 40, .listeners = {on_event(observer)}}) == 450);
  CHECK(told == 450);
  CHECK(largest == 40);
}

TEST_CASE("a purge removes at most max_rows rows, the oldest first") {
  const OldRows db;
  for (int hour = 30; hour > 0; --hour) db.add("svc", 10, std::chrono::hours(hour));
  CHECK(purge_of(db, 1min, {.batch_size = 16, .max_rows = 100}) == 100);
  CHECK(db.claims() == 200);
  CHECK(db.claims_older_than(20h + 30min) == 0);
}

TEST_CASE("the longest max_time does not end") {
  const OldRows db;
  db.add("svc", 50, 25h);
  CHECK(purge_of(db, 1h, {.batch_size = 10, .max_time = std::chrono::milliseconds::max()}) == 50);
}

TEST_CASE("no batch begins after max_time" * doctest::test_suite("timed")) {
  const OldRows db;
  db.add("svc", 500, 25h);
  std::size_t batches = 0;
  // The pause after the first batch is much longer than max_time. On any machine, the first batch begins in max_time.
  CHECK(purge_of(db, 1h, {.batch_size = 10, .max_time = 5s, .duty = 1e-6, .listeners = {on_event([&](auto&) {
                                                                            ++batches;
                                                                          })}}) == 10);
  CHECK(batches == 1);
  CHECK(db.claims() == 490);
}

TEST_CASE("after a stop, the running batch finishes, and the pause after it ends") {
  const OldRows db;
  db.add("svc", 500, 25h);
  std::stop_source stop;
  const auto observer = [&](const Event&) { stop.request_stop(); };
  CHECK(purge_of(db, 1h,
                 {.batch_size = 10, .duty = 1e-6, .stop = stop.get_token(), .listeners = {on_event(observer)}}) == 10);
  CHECK(db.claims() == 490);
  CHECK(purge_of(db, 1h, {.stop = stop.get_token()}) == 0);
  CHECK(db.number("select purged from txinbox_consumer") == 10);
}

TEST_CASE("a redelivery runs again after its row was purged, and not before") {
  const OldRows db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  const Message message{.business_key = "order1"};
  int runs = 0;
  const auto handler = [&](soci::session&, Delivery&) { ++runs; };
  CHECK(consumer.consume(message, handler).outcome == Outcome::consumed);
  CHECK(purge(pool.acquire(), 24h) == 0);
  CHECK(consumer.consume(message, handler).outcome == Outcome::already_consumed);
  db.age_all(25h);
  CHECK(purge(pool.acquire(), 24h) == 1);
  CHECK(consumer.consume(message, handler).outcome == Outcome::consumed);
  CHECK(runs == 2);
}

TEST_CASE("a purge records its retention, its count and its time for the consumer") {
  const OldRows db;
  db.add("a", 3, 25h);
  db.add("b", 4, 25h);
  db.run("insert into txinbox_consumer (consumer, duplicates) values ('a', 7)");
  const auto of = [&](const std::string& column, const std::string& consumer) {
    return db.number("select " + column + " from txinbox_consumer where consumer = '" + consumer + "'");
  };
  CHECK(purge_of(db, 2h, {.consumer = "a", .max_rows = 1}) == 1);
  CHECK(purge_of(db, 3h, {.consumer = "a"}) == 2);
  CHECK(of("retention", "a") == 3 * 3600);
  CHECK(of("purged", "a") == 3);
  CHECK(of("duplicates", "a") == 7);
  CHECK(db.number("select count(*) from txinbox_consumer where purged_at is not null") == 1);
  CHECK(purge_of(db, 4h) == 4);
  CHECK(purge_of(db, 4h) == 0);
  CHECK(of("retention", "") == 4 * 3600);
  CHECK(of("purged", "") == 4);
  CHECK(of("retention", "a") == 3 * 3600);
}

TEST_CASE("a purge that fails records how many rows it has removed") {
  const OldRows db;
  db.add("svc", 3, 25h);
  const auto observer = [&](const Event& event) {
    CHECK(event.type == EventType::purged);  // there is no retry event
    db.run("alter table txinbox_consumed_message rename to taken_away");
  };
  CHECK_THROWS_AS(purge_of(db, 1h, {.batch_size = 1, .listeners = {on_event(observer)}}), soci::soci_error);
  CHECK(db.number("select purged from txinbox_consumer") == 1);
  CHECK(db.number("select count(*) from taken_away") == 2);
}

TEST_CASE("an invalid retention is refused, and the error names the remedy") {
  const OldRows db;
  db.add("svc", 1, 25h);
  const auto session = db.session();
  for (const auto older_than : {0s, -1s, std::chrono::seconds::max(), std::chrono::seconds::min()}) {
    for (const Purgeable what : {Purgeable::consumed, Purgeable::failed, Purgeable::conflicts}) {
      try {
        purge(*session, older_than, {.what = what});
        FAIL("nothing was thrown");
      } catch (const Error& e) {
        CHECK(e.code() == ErrorCode::invalid_argument);
        CHECK(std::string(e.what()).find("from 1 s") != std::string::npos);
        CHECK(std::string(e.what()).find("delivered again") != std::string::npos);
      }
    }
  }
  CHECK(db.claims() == 1);
}

TEST_CASE("the error for an invalid option names the option") {
  const OldRows db;
  const auto refused = [&](const PurgeOptions& options, const std::string& name) {
    try {
      purge_of(db, 1h, options);
      FAIL("nothing was thrown");
    } catch (const Error& e) {
      CHECK(e.code() == ErrorCode::invalid_argument);
      CHECK(std::string(e.what()).find(name) != std::string::npos);
    }
  };
  refused({.batch_size = 0}, "PurgeOptions::batch_size");
  refused({.batch_size = 10'001}, "PurgeOptions::batch_size");
  refused({.max_time = -1ms}, "PurgeOptions::max_time");
  refused({.max_batch_time = 0ms}, "PurgeOptions::max_batch_time");
  for (const double duty : {0.0, -1.0, 1.5, std::nan("")}) refused({.duty = duty}, "PurgeOptions::duty");
  refused({.retry = {.max_runs = 0}}, "RetryPolicy::max_runs");
  CHECK(thrown_by([&] { purge_of(db, 1h, {.consumer = std::string(65, 'c')}); }) == "invalid_key");
}

TEST_CASE("a purge refuses a session with an open transaction, and does not end the transaction") {
  const OldRows db;
  db.add("svc", 1, 25h);
  const auto session = db.session();
  session->begin();
  *session << "update txinbox_consumed_message set message_id = 'mine'";
  CHECK(thrown_by([&] { purge(*session, 1h); }) == "transaction_open");
  session->commit();
  CHECK(db.number("select count(*) from txinbox_consumed_message where message_id = 'mine'") == 1);
}

TEST_CASE("a purge keeps the settings of the session, and leaves no transaction open") {
  const OldRows db;
  for (const bool autocommit : {true, false}) {
    if (!autocommit && !has_autocommit_setting()) continue;
    db.add("svc", 150, 25h);
    const auto session = db.session();
    if (!autocommit) *session << "set autocommit = 0";
    const std::string before = db.settings_of(*session);
    CHECK(purge(*session, 1h) == 150);
    CHECK(db.settings_of(*session) == before);
    CHECK(db.claims() == 0);
    session->begin();  // SQLite refuses this inside a transaction
    session->rollback();
  }
}

TEST_CASE("without the tables, a purge throws schema_missing") {
  const TestDatabase db(TestDatabase::Tables::none);
  CHECK(thrown_by([&] { purge(*db.session(), 1h); }) == "schema_missing");
}

}  // namespace
}  // namespace txinbox::test
