// count_starts: attempts are counted from their start, so a message that always crashes its process is parked.

#include <unistd.h>

#include <atomic>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/failed_messages.hpp>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/child_process.hpp"
#include "support/crashing_handlers.hpp"
#include "support/effects.hpp"
#include "support/guard_cases.hpp"
#include "support/outcomes.hpp"
#include "support/schema_tools.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("the crashes of a message are counted from the second one, and after max_attempts it is parked") {
  const EffectDatabase db;
  const auto killed = [&] {
    return in_process([&] {
      Pool pool = db.pool(2);
      (void)TxConsumer(pool, "svc", counting).consume(order, crash);
    });
  };
  CHECK(killed() == died);
  CHECK(markers(db) == 1);
  CHECK(exclusive_markers(db) == 0);
  CHECK(killed() == died);  // the message runs alone from now on
  CHECK(exclusive_markers(db) == 1);
  CHECK(list_failed(*db.session()).empty());
  CHECK(killed() == died);  // counts the second crash
  CHECK(exclusive_markers(db) == 1);
  CHECK(only_failed(db).attempts == 1);
  CHECK(only_failed(db).crashes == 1);
  CHECK(only_failed(db).last_error == "process crashed");
  Pool pool = db.pool(2);
  TxConsumer consumer(pool, "svc", counting);
  CHECK(consumer.consume(order, add_effect).outcome == parked);
  CHECK(consumer.consume(order, add_effect).outcome == parked);
  CHECK(only_failed(db).state == FailedState::parked);
  CHECK(only_failed(db).crashes == 2);
  CHECK(db.effects() == 0);
  CHECK(retry_failed(*db.session(), {}) == 1);
  CHECK(consumer.consume(order, add_effect).outcome == consumed);
}

TEST_CASE("without count_starts, the crashes of a message are never counted") {
  const EffectDatabase db;
  for (int i = 0; i < 3; ++i) {
    CHECK(in_process([&] {
            Pool pool = db.pool(1);
            (void)TxConsumer(pool, "svc", {.max_attempts = 1}).consume(order, crash);
          }) == died);
  }
  Pool pool = db.pool(1);
  CHECK(TxConsumer(pool, "svc", {.max_attempts = 1}).consume(order, add_effect).outcome == consumed);
  CHECK(list_failed(*db.session()).empty());
}

TEST_CASE("an attempt leaves no marker after it is consumed, after it fails, and after a transient error") {
  const EffectDatabase db;
  Pool pool = db.pool(2);
  TxConsumer consumer(pool, "svc", {.retry = {.max_runs = 1}, .max_attempts = 9, .count_starts = true});
  int seen = 0;
  const auto watch = [&](soci::session& sql, Delivery& delivery) {
    seen += static_cast<int>(markers(db));
    add_effect(sql, delivery);
  };
  CHECK(consumer.consume({.business_key = "1"}, watch).outcome == consumed);
  CHECK(seen == 1);
  CHECK(db.number("select count(*) from txinbox_failed_message") == 0);
  CHECK_THROWS((void)consumer.consume(order, [](soci::session&, Delivery&) { throw std::runtime_error("no"); }));
  CHECK(markers(db) == 0);
  CHECK(only_failed(db).attempts == 1);
  CHECK_THROWS(
      (void)consumer.consume(order, [](soci::session&, Delivery&) { throw Error(ErrorCode::acquire_timeout, ""); }));
  CHECK(markers(db) == 0);
  CHECK(only_failed(db).attempts == 1);
  CHECK(consumer.consume(order, watch).outcome == consumed);
  CHECK(consumer.consume(order, watch).outcome == duplicate);
  CHECK(markers(db) == 0);
  CHECK(db.effects() == 2);
}

TEST_CASE("with count_starts a batch runs one message after another, and a failure fails only its own message") {
  const EffectDatabase db;
  Pool pool = db.pool(2);
  TxConsumer consumer(pool, "svc", counting);
  std::vector<std::size_t> places;
  const auto handler = [&](soci::session& sql, Delivery& delivery) {
    places.push_back(delivery.index());
    add_effect(sql, delivery);
    if (delivery.message().business_key == "bad") throw std::runtime_error("bad");
  };
  const auto batch = messages_of({"1", "bad", "2"});
  CHECK(outcomes(consumer.consume_batch(batch, handler, OnFailure::skip)) == Outcomes{consumed, failed, consumed});
  CHECK(places == std::vector<std::size_t>{0, 1, 2});
  CHECK(outcomes(consumer.consume_batch(batch, handler)) == Outcomes{duplicate, parked, not_run});
  CHECK(outcomes(consumer.consume_batch(batch, handler)) == Outcomes{duplicate, parked, duplicate});
  CHECK(db.effects() == 2);
}

TEST_CASE("the marker of an attempt is removed before the backoff, also if its connection is lost" *
          doctest::skip(!has_server())) {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  long long markers_in_backoff = -1;
  const auto observer = [&](const Event& event) {
    if (event.type == EventType::retry) markers_in_backoff = markers(db);
  };
  TxConsumer consumer(pool, "svc",
                      {.retry = {.initial_backoff = 1ms}, .listeners = {on_event(observer)}, .count_starts = true});
  int runs = 0;
  const auto handler = [&](soci::session& sql, Delivery& delivery) {
    if (++runs == 1) kill_connection(sql, db);
    add_effect(sql, delivery);
  };
  CHECK(consumer.consume(order, handler).outcome == consumed);
  CHECK(markers_in_backoff == 0);
  CHECK(db.effects() == 1);
}

TEST_CASE("a lease is released only after the marker of its attempt is removed") {
  const EffectDatabase db;
  Pool pool = db.pool(2);
  long long markers_at_the_end = -1;
  const auto observer = [&](const Event& event) {
    if (event.type == EventType::failed) markers_at_the_end = markers(db);
  };
  LeaseConsumer consumer(pool, "svc", {}, {.listeners = {on_event(observer)}, .max_attempts = 2, .count_starts = true});
  CHECK_THROWS((void)consumer.consume(order, [](Lease&) { throw Error(ErrorCode::acquire_timeout, ""); }));
  CHECK(markers_at_the_end == 0);
}

TEST_CASE("a message whose handler crashes under a lease is parked after max_attempts") {
  const EffectDatabase db;
  const auto killed = [&] {
    return in_process([&] {
      Pool pool = db.pool(2);
      (void)LeaseConsumer(pool, "svc", {}, {.max_attempts = 2, .count_starts = true}).consume(order, crash_leased);
    });
  };
  for (int i = 0; i < 3; ++i) {  // the first crash is not counted
    CHECK(killed() == died);
    db.run("update txinbox_consumed_message set lease_expires_at = '2020-01-01 00:00:00.000'");
  }
  Pool pool = db.pool(2);
  LeaseConsumer consumer(pool, "svc", {}, {.max_attempts = 2, .count_starts = true});
  CHECK(consumer.consume(order, [](Lease&) { FAIL("a handler ran that must not run"); }).outcome == parked);
  CHECK(only_failed(db).crashes == 2);
  CHECK(only_failed(db).state == FailedState::parked);
  CHECK(retry_failed(*db.session(), {}) == 1);
  CHECK(consumer.consume(order, [](Lease&) {}).outcome == consumed);
  CHECK(markers(db) == 0);
}

TEST_CASE("an attempt leaves its marker also if it takes over a key whose valid_for is over") {
  const EffectDatabase db;
  Pool pool = db.pool(2);
  TxConsumer consumer(pool, "svc", counting);
  const Message expiring{.business_key = "order", .valid_for = 1ms};
  for (int run = 0; run < 2; ++run) {
    long long markers_of_run = 0;
    CHECK(consumer.consume(expiring, [&](soci::session&, Delivery&) { markers_of_run = markers(db); }).outcome ==
          consumed);
    CHECK(markers_of_run == 1);
    std::this_thread::sleep_for(2ms);
  }
  CHECK(markers(db) == 0);
}

TEST_CASE("a lease is given back if its marker cannot be written, and nothing is counted") {
  const EffectDatabase db;
  if (on_postgresql()) {
    db.run("create function refuse() returns trigger language plpgsql as 'begin raise exception ''no''; end'");
  }
  const std::string create = "create trigger refuse before insert on txinbox_failed_message ";
  db.run(create + here("when new.running_token is not null begin select raise(abort, 'no'); end",
                       "for each row if new.running_token is not null then signal sqlstate '45000'; end if",
                       "for each row when (new.running_token is not null) execute function refuse()"));
  Pool pool = db.pool(2);
  LeaseConsumer consumer(pool, "svc", {}, {.retry = {.max_runs = 1}, .max_attempts = 1, .count_starts = true});
  CHECK_THROWS((void)consumer.consume(order, [](Lease&) { FAIL("a handler ran that must not run"); }));
  db.run(here("drop trigger refuse", "drop trigger refuse", "drop trigger refuse on txinbox_failed_message"));
  CHECK(list_failed(*db.session()).empty());
  CHECK(consumer.consume(order, [](Lease&) {}).outcome == consumed);
}

TEST_CASE("count_starts is refused on a caller's session") {
  const EffectDatabase db;
  const auto sql = db.session();
  CHECK_THROWS_AS(TxConsumer(*sql, "svc", counting), Error);
}

}  // namespace
}  // namespace txinbox::test
