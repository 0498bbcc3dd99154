// Handlers that ask for a later delivery, and errors that the user declares transient.

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/failed_messages.hpp>
#include <txinbox/txinbox.hpp>

#include "support/away.hpp"
#include "support/effects.hpp"
#include "support/leases.hpp"
#include "support/outcomes.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

constexpr Outcome postponed = Outcome::postponed;

void not_now(soci::session& sql, Delivery& delivery) {
  add_effect(sql, delivery);
  throw RetryLater(30s);
}

void check_postponed(const Result& result) {
  CHECK(result.outcome == postponed);
  CHECK(result.retry_after == 30s);
  CHECK(code_of(result.error) == ErrorCode::retry_later);
  CHECK(action_for(result) == Action::redeliver);
}

TEST_CASE("a handler that asks for a later delivery leaves no rows, and counts no failure") {
  const EffectDatabase db;
  Pool pool = db.pool(2);
  const auto sql = db.session();
  for (const bool counts_starts : {false, true}) {
    std::vector<EventType> told;
    TxConsumer consumer(pool, "svc",
                        {.listeners = {on_event([&](const Event& e) { told.push_back(e.type); })},
                         .max_attempts = 1,
                         .count_starts = counts_starts});
    const Message message{.business_key = "k" + std::to_string(counts_starts)};
    for (int i = 0; i < 3; ++i) check_postponed(consumer.consume(message, not_now));
    CHECK(told == std::vector(3, EventType::postponed));
    CHECK(db.effects_of(message.business_key) == 0);
    CHECK(consumer.consume(message, add_effect).outcome == consumed);
  }
  TxConsumer own(*sql, "own", {.max_attempts = 1});
  check_postponed(own.consume(order, not_now));
  CHECK(own.consume(order, add_effect).outcome == consumed);
  CHECK(list_failed(*sql).empty());
}

TEST_CASE("a negative delay counts as zero") { CHECK(RetryLater(-1s).delay() == 0ms); }

TEST_CASE(
    "in a batch, a message that asks for a later delivery is postponed; with stop, the messages after it are not run") {
  const EffectDatabase db;
  Pool pool = db.pool(2);
  const auto handler = [](soci::session& sql, Delivery& delivery) {
    add_effect(sql, delivery);
    if (delivery.message().business_key == "later") throw RetryLater(30s);
  };
  const auto messages = messages_of({"1", "later", "2"});
  for (const bool counts_starts : {false, true}) {
    TxConsumer consumer(pool, counts_starts ? "counting" : "svc", {.max_attempts = 1, .count_starts = counts_starts});
    const auto stopped = consumer.consume_batch(messages, handler);
    CHECK(outcomes(stopped) == Outcomes{consumed, postponed, not_run});
    check_postponed(stopped[1]);
    CHECK(outcomes(consumer.consume_batch(messages, handler, OnFailure::skip)) ==
          Outcomes{duplicate, postponed, consumed});
    CHECK(outcomes(consumer.consume_batch(messages_of({"later"}), handler)) == Outcomes{postponed});
  }
  CHECK(db.effects_of("later") == 0);
  CHECK(list_failed(*db.session()).empty());
}

TEST_CASE("a lease handler that asks for a later delivery releases its lease") {
  Leases t;
  LeaseConsumer consumer(t.pool, "svc", {}, {.max_attempts = 1});
  check_postponed(consumer.consume(order, [](Lease&) { throw RetryLater(30s); }));
  CHECK(consumer.consume(order, nothing).outcome == consumed);
  CHECK(list_failed(*t.db.session()).empty());
}

TEST_CASE("after an error that the user declares transient, the message runs again, and no failure is counted") {
  const EffectDatabase db;
  Pool pool = db.pool(2);
  TxConsumer consumer(pool, "svc",
                      {.retry = {.max_runs = 3, .initial_backoff = 1ms}, .max_attempts = 1, .is_transient = is_away});
  int runs = 0;
  const auto handler = [&](soci::session& sql, Delivery& delivery) {
    add_effect(sql, delivery);
    if (++runs < 3) throw Away();
  };
  CHECK(consumer.consume(order, handler).outcome == consumed);
  CHECK(runs == 3);
  CHECK(db.effects() == 1);

  runs = -100;
  CHECK_THROWS_AS((void)consumer.consume({.business_key = "2"}, handler), Away);
  CHECK(runs == -97);
  const auto results = consumer.consume_batch(messages_of({"3", "4"}), handler, OnFailure::skip);
  CHECK(outcomes(results) == Outcomes{failed, failed});
  CHECK(action_for(results[0]) == Action::redeliver);

  LeaseConsumer leases(pool, "leases", {}, {.max_attempts = 1, .is_transient = is_away});
  CHECK_THROWS_AS((void)leases.consume(order, [](Lease&) { throw Away(); }), Away);
  CHECK(list_failed(*db.session()).empty());

  // If `is_transient` throws, the error counts as a failure of the message.
  TxConsumer unsure(pool, "svc", {.is_transient = [](const std::exception_ptr&) -> bool { throw 1; }});
  CHECK_THROWS_AS((void)unsure.consume({.business_key = "5"}, [](soci::session&) { throw Away(); }), Away);
  CHECK(list_failed(*db.session()).size() == 1);
}

}  // namespace
}  // namespace txinbox::test
