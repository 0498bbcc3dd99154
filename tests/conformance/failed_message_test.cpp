// Messages whose handler fails: what is counted, when they are parked, and how they come back.

#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/child_process.hpp"
#include "support/effects.hpp"
#include "support/outcomes.hpp"
#include "support/schema_tools.hpp"

namespace txinbox::test {
namespace {

const Message order{.business_key = "order123", .message_id = "m1"};

void refuse(soci::session& sql, Delivery& delivery) {
  add_effect(sql, delivery);
  throw std::invalid_argument("no stock of 4711");
}

void reject(soci::session&, Delivery&) { throw Error(ErrorCode::rejected, "not for us"); }

/// Throws what the handler threw, also where that parked the message.
template <class Consumer, class H>
void consume_or_throw(Consumer& consumer, const Message& message, const H& handler) {
  const Result result = consumer.consume(message, handler);
  CHECK(result.outcome == parked);
  CHECK(action_for(result) == Action::dead_letter);
  if (result.error) std::rethrow_exception(result.error);
}

template <class Consumer>
void fails(Consumer& consumer, const Message& message = order) {
  CHECK_THROWS_AS(consume_or_throw(consumer, message, refuse), std::invalid_argument);
}

FailedMessage only_failed(const TestDatabase& db, const FailedFilter& filter = {}) {
  const auto sql = db.session();
  const auto all = list_failed(*sql, filter);
  REQUIRE(all.size() == 1);
  return all.front();
}

std::size_t failed_count(const TestDatabase& db) { return list_failed(*db.session()).size(); }

TEST_CASE("a failed delivery leaves its count, its first and last error, and nothing of the handler's") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  fails(consumer);
  CHECK_THROWS_AS((void)consumer.consume({.business_key = "order123", .message_id = "m2"},
                                         [](soci::session&, Delivery&) { throw std::runtime_error("later"); }),
                  std::runtime_error);
  const FailedMessage found = only_failed(db);
  CHECK(found.consumer == "svc");
  CHECK(found.business_key == "order123");
  CHECK(found.message_id == "m2");
  CHECK(found.state == FailedState::failing);
  CHECK(found.attempts == 2);
  CHECK(found.deaths == 0);
  CHECK(found.first_error == "std::invalid_argument");
  CHECK(found.last_error == "std::runtime_error");
  CHECK(found.first_failed_at.size() == 26);
  CHECK(found.first_failed_at <= found.last_failed_at);
  CHECK(found.age < std::chrono::minutes(5));
  CHECK(found.error_text.empty());
  CHECK(!found.payload);
  CHECK(db.effects() == 0);
  CHECK(db.claims() == 0);
}

TEST_CASE("a consumer on a session of the caller's counts as well") {
  const EffectDatabase db;
  const auto sql = db.session();
  TxConsumer consumer(*sql, "svc", {.max_attempts = 2});
  fails(consumer);
  fails(consumer);
  CHECK(consumer.consume(order, refuse).outcome == parked);
  CHECK(only_failed(db).state == FailedState::parked);
}

TEST_CASE("without max_attempts no message is parked, however often it fails") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  for (int i = 0; i < 20; ++i) fails(consumer);
  CHECK(only_failed(db).attempts == 20);
  CHECK(consumer.consume(order, add_effect).outcome == consumed);
}

TEST_CASE("after max_attempts a message is parked, and its handler does not run") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  std::vector<EventType> told;
  TxConsumer consumer(pool, "svc", {.observer = [&](const Event& e) { told.push_back(e.type); }, .max_attempts = 3});
  for (int i = 0; i < 2; ++i) CHECK_THROWS_AS((void)consumer.consume(order, refuse), std::invalid_argument);
  const Result last = consumer.consume(order, refuse);  // says at once that it is not to be delivered again
  CHECK(last.outcome == parked);
  CHECK(action_for(last) == Action::dead_letter);
  CHECK(error_class(last.error) == "std::invalid_argument");
  CHECK(told == std::vector{EventType::failed, EventType::failed, EventType::failed, EventType::parked});
  const Result result = consumer.consume(order, add_effect);
  CHECK(result.outcome == parked);
  CHECK(action_for(result) == Action::dead_letter);
  CHECK(only_failed(db).state == FailedState::parked);
  CHECK(only_failed(db).attempts == 3);
  CHECK(db.effects() == 0);
  // Another consumer's key, and another key of this one, are not concerned.
  CHECK(TxConsumer(pool, "other").consume(order, add_effect).outcome == consumed);
  CHECK(consumer.consume({.business_key = "order124"}, add_effect).outcome == consumed);
}

TEST_CASE("a message that succeeds in the end is left out of the list, and costs no statement more") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc", {.max_attempts = 5});
  fails(consumer);
  CHECK(failed_count(db) == 1);
  CHECK(consumer.consume(order, add_effect).outcome == consumed);
  CHECK(failed_count(db) == 0);
  CHECK(db.number("select attempts from txinbox_failed_message") == 1);
}

TEST_CASE("a handler that rejects its message parks it at once, also without max_attempts") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  const Result result = consumer.consume(order, reject);
  CHECK(result.outcome == parked);
  CHECK(code_of(result.error) == ErrorCode::rejected);
  CHECK(consumer.consume(order, add_effect).outcome == parked);
  CHECK(only_failed(db).last_error == "rejected");
}

TEST_CASE("an error's text and a payload are kept only where that was asked for") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  const std::string bytes("\0\xFF{\"no\":1}", 10);
  TxConsumer plain(pool, "plain");
  fails(plain);
  TxConsumer keeping(pool, "keeping", {.keep_error_text = true});
  fails(keeping, {.business_key = "order123", .payload = bytes});
  CHECK(only_failed(db, {.consumer = "plain", .payloads = true}).error_text.empty());
  CHECK(!only_failed(db, {.consumer = "plain", .payloads = true}).payload);
  CHECK(only_failed(db, {.consumer = "keeping"}).error_text == "no stock of 4711");
  CHECK(!only_failed(db, {.consumer = "keeping"}).payload);
  CHECK(only_failed(db, {.consumer = "keeping", .payloads = true}).payload == bytes);
}

TEST_CASE("an error text of any bytes and any length is kept as far as it goes") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc", {.keep_error_text = true});
  for (const std::string& text : {std::string("\xFF\0'; drop", 9), std::string(10'000, 'x'), std::string()}) {
    CHECK_THROWS_AS((void)consumer.consume(order, [&](soci::session&, Delivery&) { throw std::runtime_error(text); }),
                    std::runtime_error);
  }
  CHECK(only_failed(db).attempts == 3);
}

TEST_CASE("transient errors, stops and outages are not the message's, and are not counted") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  std::stop_source stop;
  TxConsumer consumer(
      pool, "svc", {.retry = {.max_attempts = 2, .initial_backoff = {}}, .stop = stop.get_token(), .max_attempts = 1});
  const auto busy = [](soci::session&, Delivery&) { throw Error(ErrorCode::acquire_timeout, "busy"); };
  CHECK_THROWS_AS((void)consumer.consume(order, busy), Error);
  const auto stopping = [&](soci::session&, Delivery&) {
    stop.request_stop();
    throw std::runtime_error("gave it back");
  };
  CHECK_THROWS_AS((void)consumer.consume(order, stopping), std::runtime_error);
  CHECK(failed_count(db) == 0);
  CHECK(TxConsumer(pool, "svc").consume(order, add_effect).outcome == consumed);
}

TEST_CASE("a handler that ends the transaction is counted; what it committed is torn, not parked") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc", {.max_attempts = 1});
  CHECK_THROWS_AS(consume_or_throw(consumer, order, [](soci::session& sql, Delivery&) { sql << "rollback"; }), Error);
  CHECK(only_failed(db).last_error == "transaction_lost");
  CHECK(consumer.consume(order, add_effect).outcome == parked);
}

TEST_CASE("what a batch's message fails with is counted for that message alone") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc", {.max_attempts = 2});
  const auto handler = [](soci::session& sql, Delivery& delivery) {
    add_effect(sql, delivery);
    if (delivery.message().business_key == "bad") throw std::invalid_argument("bad");
  };
  const auto batch = messages_of({"1", "bad", "2"});
  CHECK(outcomes(consumer.consume_batch(batch, handler, OnFailure::skip)) == Outcomes{consumed, failed, consumed});
  CHECK(only_failed(db).attempts == 1);
  const auto results = consumer.consume_batch(batch, handler);
  CHECK(outcomes(results) == Outcomes{duplicate, parked, not_run});
  CHECK(error_class(results[1].error) == "std::invalid_argument");
  CHECK(only_failed(db).business_key == "bad");
  CHECK(outcomes(consumer.consume_batch(batch, handler)) == Outcomes{duplicate, parked, duplicate});
}

TEST_CASE("retry lets the next delivery run, and the count begins anew") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc", {.max_attempts = 2});
  fails(consumer);
  fails(consumer);
  CHECK(consumer.consume(order, add_effect).outcome == parked);
  CHECK(retry_failed(*db.session(), {.business_key = "order124"}) == 0);
  CHECK(retry_failed(*db.session(), {.consumer = "svc", .business_key = "order123"}) == 1);
  fails(consumer);
  CHECK(consumer.consume(order, add_effect).outcome == consumed);
  CHECK(retry_failed(*db.session(), {}) == 0);
  CHECK(consumer.consume(order, add_effect).outcome == duplicate);
}

TEST_CASE("retry does not touch what is torn") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc", {.max_attempts = 1});
  fails(consumer);
  db.run("update txinbox_consumed_message set state = 'torn'");
  CHECK(only_failed(db).state == FailedState::torn);
  CHECK(retry_failed(*db.session(), {}) == 0);
  CHECK(consumer.consume(order, add_effect).outcome == parked);
}

TEST_CASE("discard leaves a state that never runs and is acknowledged") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc", {.max_attempts = 1});
  fails(consumer);
  TxConsumer patient(pool, "patient");
  fails(patient);
  CHECK(discard_failed(*db.session(), {}) == 2);
  for (TxConsumer* each : {&consumer, &patient}) {
    const Result result = each->consume(order, add_effect);
    CHECK(result.outcome == Outcome::discarded);
    CHECK(action_for(result) == Action::acknowledge);
  }
  CHECK(outcomes(consumer.consume_batch(messages_of({"order123", "2"}), add_effect)) ==
        Outcomes{Outcome::discarded, consumed});
  CHECK(failed_count(db) == 0);
  CHECK(list_failed(*db.session(), {.state = FailedState::discarded}).size() == 2);
  CHECK(retry_failed(*db.session(), {}) == 0);
  CHECK(discard_failed(*db.session(), {}) == 0);
}

TEST_CASE("filters choose by consumer, key, state and age, and the latest failure comes first") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer a(pool, "a", {.max_attempts = 1});
  TxConsumer b(pool, "b");
  fails(a, {.business_key = "1"});
  fails(b, {.business_key = "1"});
  fails(b, {.business_key = "2"});
  const auto sql = db.session();
  CHECK(list_failed(*sql, {.consumer = "b"}).size() == 2);
  CHECK(list_failed(*sql, {.business_key = "1"}).size() == 2);
  CHECK(list_failed(*sql, {.state = FailedState::parked}).size() == 1);
  CHECK(list_failed(*sql, {.state = FailedState::failing}).size() == 2);
  CHECK(list_failed(*sql, {.older_than = std::chrono::hours(1)}).empty());
  CHECK(list_failed(*sql, {.limit = 2}).size() == 2);
  db.run("update txinbox_failed_message set last_failed_at = " +
         here<std::string>("'2020-01-01 00:00:00.000'", "'2020-01-01'", "'2020-01-01'") + " where business_key = '2'");
  CHECK(list_failed(*sql, {.older_than = std::chrono::hours(1)}).front().business_key == "2");
  CHECK(list_failed(*sql).back().business_key == "2");
  CHECK_THROWS_AS((void)list_failed(*sql, {.business_key = std::string(256, 'x')}), Error);
}

TEST_CASE("if the counting fails, the handler's error is what the caller gets, and nothing is parked") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc", {.max_attempts = 1});
  CHECK(consumer.consume({.business_key = "warm"}, add_effect).outcome == consumed);
  db.run("alter table txinbox_failed_message rename to gone");
  fails(consumer);
  CHECK_THROWS_AS((void)consumer.consume(order, reject), Error);
  CHECK(db.claims() == 1);
  db.run("alter table gone rename to txinbox_failed_message");
  CHECK(consumer.consume(order, add_effect).outcome == consumed);
}

TEST_CASE("a delivery of the key that runs meanwhile is waited for, and is not parked if it commits") {
  const EffectDatabase db;
  Pool pool = db.pool(2);
  TxConsumer consumer(pool, "svc", {.max_attempts = 1});
  fails(consumer, {.business_key = "warm"});
  std::jthread other;
  const auto failing = [&](soci::session& sql, Delivery&) {
    sql << "select 1";
    other = std::jthread([&] { (void)TxConsumer(pool, "svc").consume(order, add_effect); });
    throw std::invalid_argument("this one fails");
  };
  // Thrown where the other one was faster, and the message is not parked.
  try {
    const Result result = consumer.consume(order, failing);
    CHECK(result.outcome == parked);
  } catch (const std::invalid_argument&) {
  }
  other.join();
  const Result after = consumer.consume(order, add_effect);
  // Whichever came first; but never both, and never neither.
  CHECK((after.outcome == duplicate || after.outcome == parked));
  CHECK(db.effects() == (after.outcome == duplicate ? 1 : 0));
}

/// What a handler keeps with its connection ends behind the rollback, and before anything is counted.
struct DiesAtItsEnd {
  explicit DiesAtItsEnd(soci::session&) {}
  ~DiesAtItsEnd() { ::_exit(9); }
};

TEST_CASE("a crash between the rollback and the count loses the count, and nothing else") {
  const EffectDatabase db;
  CHECK(in_process([&] {
          Pool pool = db.pool(1);
          (void)TxConsumer(pool, "svc", {.max_attempts = 1}).consume(order, [](soci::session& sql, Delivery& delivery) {
            delivery.per_connection<DiesAtItsEnd>(sql);
            refuse(sql, delivery);
          });
        }) == 9);
  CHECK(failed_count(db) == 0);
  CHECK(db.claims() == 0);
  CHECK(db.effects() == 0);
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc", {.max_attempts = 1});
  fails(consumer);
  CHECK(only_failed(db).state == FailedState::parked);
}

TEST_CASE("retries and parking at the same time end in one of the two, and the message is not lost") {
  const EffectDatabase db;
  Pool pool = db.pool(3);
  std::atomic<bool> over = false;
  std::thread operators([&] {
    const auto sql = db.session();
    while (!over) retry_failed(*sql, {});
  });
  std::vector<std::thread> deliveries;
  for (int t = 0; t < 2; ++t) {
    deliveries.emplace_back([&] {
      TxConsumer consumer(pool, "svc", {.max_attempts = 1});
      for (int i = 0; i < 20; ++i) {
        try {
          const Result result = consumer.consume(order, refuse);
          CHECK(result.outcome == parked);
        } catch (const std::invalid_argument&) {  // it ran, and failed
        }
      }
    });
  }
  for (auto& each : deliveries) each.join();
  over = true;
  operators.join();
  CHECK(db.effects() == 0);
  retry_failed(*db.session(), {});
  CHECK(TxConsumer(pool, "svc").consume(order, add_effect).outcome == consumed);
  CHECK(db.effects() == 1);
}

TEST_CASE("max_attempts below zero is refused") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  CHECK_THROWS_AS(TxConsumer(pool, "svc", {.max_attempts = -1}), Error);
}

}  // namespace
}  // namespace txinbox::test
