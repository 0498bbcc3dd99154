// Messages whose handler fails: what the tables keep of the failures, and other deliveries at the same time.

#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/failed_messages.hpp>
#include <txinbox/txinbox.hpp>

#include "support/child_process.hpp"
#include "support/effects.hpp"
#include "support/failing_deliveries.hpp"
#include "support/outcomes.hpp"
#include "support/schema_tools.hpp"

namespace txinbox::test {
namespace {

TEST_CASE("a failed delivery leaves its count, its first and last error, and no rows of the handler") {
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
  CHECK(found.crashes == 0);
  CHECK(found.first_error == "std::invalid_argument");
  CHECK(found.last_error == "std::runtime_error");
  CHECK(found.first_failed_at.has_value());
  CHECK(found.first_failed_at <= found.last_failed_at);
  CHECK(found.age < std::chrono::minutes(5));
  CHECK(found.error_text.empty());
  CHECK(!found.payload);
  CHECK(db.effects() == 0);
  CHECK(db.claims() == 0);
}

TEST_CASE("a consumer on a caller's session counts failures, too") {
  const EffectDatabase db;
  const auto sql = db.session();
  TxConsumer consumer(*sql, "svc", {.max_attempts = 2});
  fails(consumer);
  fails(consumer);
  CHECK(consumer.consume(order, refuse).outcome == parked);
  CHECK(only_failed(db).state == FailedState::parked);
}

TEST_CASE("without max_attempts no message is parked, even after many failures") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  for (int i = 0; i < 20; ++i) fails(consumer);
  CHECK(only_failed(db).attempts == 20);
  CHECK(consumer.consume(order, add_effect).outcome == consumed);
}

TEST_CASE("a message that succeeds after failures is not listed, although the row of its failures stays") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc", {.max_attempts = 5});
  fails(consumer);
  CHECK(failed_count(db) == 1);
  CHECK(consumer.consume(order, add_effect).outcome == consumed);
  CHECK(failed_count(db) == 0);
  CHECK(db.number("select attempts from txinbox_failed_message") == 1);
}

TEST_CASE("the text of an error and the payload are kept only with keep_error_text") {
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

TEST_CASE("an error text of any bytes and any length is accepted") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc", {.keep_error_text = true});
  for (const std::string& text : {std::string("\xFF\0'; drop", 9), std::string(10'000, 'x'), std::string()}) {
    CHECK_THROWS_AS((void)consumer.consume(order, [&](soci::session&, Delivery&) { throw std::runtime_error(text); }),
                    std::runtime_error);
  }
  CHECK(only_failed(db).attempts == 3);
}

TEST_CASE(
    "a handler that rolls the transaction back is counted as a failure, and parks its message after max_attempts") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc", {.max_attempts = 1});
  CHECK_THROWS_AS(consume_or_throw(consumer, order, [](soci::session& sql, Delivery&) { sql << "rollback"; }), Error);
  CHECK(only_failed(db).last_error == "transaction_lost");
  CHECK(consumer.consume(order, add_effect).outcome == parked);
}

TEST_CASE("a failure in a batch is counted only for its own message") {
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
  CHECK(db.number("select count(*) from txinbox_failed_message") == 1);  // the list leaves out consumed messages
  const auto results = consumer.consume_batch(batch, handler);
  CHECK(outcomes(results) == Outcomes{duplicate, parked, not_run});
  CHECK(error_class(results[1].error) == "std::invalid_argument");
  CHECK(only_failed(db).business_key == "bad");
  CHECK(outcomes(consumer.consume_batch(batch, handler)) == Outcomes{duplicate, parked, duplicate});
}

TEST_CASE("if the failure cannot be counted, the caller gets the handler's error, and nothing is parked") {
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

TEST_CASE("a message is parked after the other delivery of its key has ended, and not if that delivery commits") {
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
  // consume throws if the other delivery was faster. Then the message is not parked.
  try {
    const Result result = consumer.consume(order, failing);
    CHECK(result.outcome == parked);
  } catch (const std::invalid_argument&) {
  }
  other.join();
  const Result after = consumer.consume(order, add_effect);
  // The message is either consumed or parked.
  CHECK((after.outcome == duplicate || after.outcome == parked));
  CHECK(db.effects() == (after.outcome == duplicate ? 1 : 0));
}

/// An object in per_connection is destroyed after the rollback, and before the failure is counted.
struct DiesAtItsEnd {
  explicit DiesAtItsEnd(soci::session&) {}
  ~DiesAtItsEnd() { ::_exit(9); }
};

TEST_CASE("a crash between the rollback and the count loses only the count") {
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

}  // namespace
}  // namespace txinbox::test
