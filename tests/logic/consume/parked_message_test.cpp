// Which failures of a handler count, and which of them park the message.

#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/failed_messages.hpp>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/failing_deliveries.hpp"
#include "support/outcomes.hpp"
#include "support/schema_tools.hpp"

namespace txinbox::test {
namespace {

TEST_CASE("after max_attempts a message is parked, and its handler does not run") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  std::vector<EventType> told;
  TxConsumer consumer(pool, "svc",
                      {.listeners = {on_event([&](const Event& e) { told.push_back(e.type); })}, .max_attempts = 3});
  for (int i = 0; i < 2; ++i) CHECK_THROWS_AS((void)consumer.consume(order, refuse), std::invalid_argument);
  const Result last = consumer.consume(order, refuse);  // the third failure parks the message
  CHECK(last.outcome == parked);
  CHECK(action_for(last) == Action::dead_letter);
  CHECK(error_class(last.error) == "std::invalid_argument");
  CHECK(told == std::vector{EventType::failed, EventType::failed, EventType::parked});
  const Result result = consumer.consume(order, add_effect);
  CHECK(result.outcome == parked);
  CHECK(action_for(result) == Action::dead_letter);
  CHECK(only_failed(db).state == FailedState::parked);
  CHECK(only_failed(db).attempts == 3);
  CHECK(db.effects() == 0);
  // The same key of another consumer is not parked, and neither is another key.
  CHECK(TxConsumer(pool, "other").consume(order, add_effect).outcome == consumed);
  CHECK(consumer.consume({.business_key = "order124"}, add_effect).outcome == consumed);
}

TEST_CASE("a handler that rejects its message parks it immediately, also without max_attempts") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  const Result result = consumer.consume(order, reject);
  CHECK(result.outcome == parked);
  CHECK(code_of(result.error) == ErrorCode::rejected);
  CHECK(consumer.consume(order, add_effect).outcome == parked);
  CHECK(only_failed(db).last_error == "rejected");
}

TEST_CASE("transient errors and failures after the stop are not counted as failures of the message") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  std::stop_source stop;
  TxConsumer consumer(pool, "svc",
                      {.retry = {.max_runs = 2, .initial_backoff = {}}, .stop = stop.get_token(), .max_attempts = 1});
  const auto busy = [](soci::session&, Delivery&) { throw Error(ErrorCode::acquire_timeout, "busy"); };
  CHECK_THROWS_AS((void)consumer.consume(order, busy), Error);
  const auto stopping = [&](soci::session&, Delivery&) {
    stop.request_stop();
    throw std::runtime_error("after the stop");
  };
  CHECK_THROWS_AS((void)consumer.consume(order, stopping), std::runtime_error);
  CHECK(failed_count(db) == 0);
  CHECK(TxConsumer(pool, "svc").consume(order, add_effect).outcome == consumed);
}

TEST_CASE("a message of a batch whose claim the database refuses is not counted, because its handler has not run") {
  const EffectDatabase db;
  db.run(
      "create trigger refuse before insert on txinbox_consumed_message when new.business_key = 'bad' "
      "begin select raise(abort, 'refused'); end");
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc", {.max_attempts = 1});
  const auto batch = messages_of({"1", "bad", "2"});
  CHECK(outcomes(consumer.consume_batch(batch, add_effect, OnFailure::skip)) == Outcomes{consumed, failed, consumed});
  CHECK(db.number("select count(*) from txinbox_failed_message") == 0);
  db.run("drop trigger refuse");
  CHECK(outcomes(consumer.consume_batch(batch, add_effect)) == Outcomes{duplicate, consumed, duplicate});
}

TEST_CASE("max_attempts below zero is refused") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  CHECK_THROWS_AS(TxConsumer(pool, "svc", {.max_attempts = -1}), Error);
}

}  // namespace
}  // namespace txinbox::test
