// Operators list failed messages, retry them and discard them.

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/failed_messages.hpp>
#include <txinbox/inspect.hpp>
#include <txinbox/txinbox.hpp>

#include "support/crashing_handlers.hpp"
#include "support/failing_deliveries.hpp"
#include "support/schema_tools.hpp"

namespace txinbox::test {
namespace {

TEST_CASE("after a retry the next delivery runs, and its failures count from zero") {
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

TEST_CASE("retry keeps the marker of an attempt that may be running, and removes the marker of a parked message") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc", {.max_attempts = 2});
  fails(consumer);
  leave_exclusive_marker(db);
  CHECK(retry_failed(*db.session(), {}) == 1);
  CHECK(markers(db) == 1);
  fails(consumer);
  fails(consumer);
  CHECK(only_failed(db).state == FailedState::parked);
  leave_exclusive_marker(db);
  CHECK(retry_failed(*db.session(), {}) == 1);
  CHECK(markers(db) == 0);
}

TEST_CASE("retry does not change a torn message") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc", {.max_attempts = 1});
  fails(consumer);
  db.run("update txinbox_consumed_message set state = 'torn'");
  CHECK(only_failed(db).state == FailedState::torn);
  CHECK(retry_failed(*db.session(), {}) == 0);
  CHECK(consumer.consume(order, add_effect).outcome == parked);
}

TEST_CASE("a discarded message never runs, and its deliveries are acknowledged") {
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

/// A message whose attempt under a lease failed. The lease was released.
void fails_under_lease(Pool& pool) {
  LeaseConsumer consumer(pool, "svc");
  CHECK_THROWS_AS((void)consumer.consume(order, [](Lease&) { throw std::invalid_argument("no"); }),
                  std::invalid_argument);
}

TEST_CASE("a message that failed under a lease is failing, and can be retried and discarded") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  fails_under_lease(pool);
  CHECK(only_failed(db).state == FailedState::failing);
  CHECK(only_failed(db, {.state = FailedState::failing}).attempts == 1);
  CHECK(list_failed(*db.session(), {.state = FailedState::running}).empty());
  CHECK(retry_failed(*db.session(), {}) == 1);
  CHECK(failed_count(db) == 0);
  fails_under_lease(pool);
  CHECK(only_failed(db).attempts == 1);
  CHECK(discard_failed(*db.session(), {}) == 1);
  CHECK(only_failed(db, {.state = FailedState::discarded}).attempts == 1);
  CHECK(list_leases(*db.session()).empty());
  CHECK(db.number("select count(*) from txinbox_consumed_message where lease_owner is not null or lease_expires_at is "
                  "not null") == 0);
  LeaseConsumer consumer(pool, "svc");
  CHECK(consumer.consume(order, [](Lease&) { FAIL("a discarded message ran"); }).outcome == Outcome::discarded);
}

TEST_CASE("a message whose lease is held is running until the lease has ended, and cannot be changed") {
  const EffectDatabase db;
  Pool pool = db.pool(2);
  fails_under_lease(pool);
  LeaseConsumer consumer(pool, "svc");
  CHECK_THROWS_AS((void)consumer.consume(order,
                                         [&](Lease&) {
                                           CHECK(only_failed(db).state == FailedState::running);
                                           CHECK(only_failed(db, {.state = FailedState::running}).attempts == 1);
                                           CHECK(list_failed(*db.session(), {.state = FailedState::failing}).empty());
                                           CHECK(retry_failed(*db.session(), {}) == 0);
                                           CHECK(discard_failed(*db.session(), {}) == 0);
                                           // As if its time had passed while the handler still runs.
                                           db.run("update txinbox_consumed_message set lease_expires_at = consumed_at");
                                           CHECK(only_failed(db).state == FailedState::failing);
                                           CHECK(discard_failed(*db.session(), {}) == 1);
                                         }),
                  Error);
  CHECK(only_failed(db, {.state = FailedState::discarded}).attempts == 1);
}

TEST_CASE("filters select by consumer, key, state and age, and the list begins with the latest failure") {
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
  CHECK(list_failed(*sql, {.older_than = std::chrono::seconds::max()}).empty());
  CHECK(list_failed(*sql, {.limit = 2}).size() == 2);
  db.run("update txinbox_failed_message set last_failed_at = " +
         here<std::string>("'2020-01-01 00:00:00.000'", "'2020-01-01'", "'2020-01-01'") + " where business_key = '2'");
  CHECK(list_failed(*sql, {.older_than = std::chrono::hours(1)}).front().business_key == "2");
  CHECK(list_failed(*sql).back().business_key == "2");
  CHECK_THROWS_AS((void)list_failed(*sql, {.business_key = std::string(256, 'x')}), Error);
}

TEST_CASE("failed messages are counted, and in groups by consumer, state and class of their last error") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer parking(pool, "svc", {.max_attempts = 1});
  for (const char* key : {"a", "b", "c"}) fails(parking, {.business_key = key});
  TxConsumer failing(pool, "svc");
  fails(failing, {.business_key = "d"});
  TxConsumer rejecting(pool, "other");
  CHECK(rejecting.consume({.business_key = "a"}, reject).outcome == parked);
  CHECK(failing.consume({.business_key = "d"}, add_effect).outcome == consumed);  // it is in no group any more
  fails(failing, {.business_key = "e"});

  const auto groups = group_failed(*db.session());
  REQUIRE(groups.size() == 3);
  CHECK(groups[0].consumer == "svc");
  CHECK(groups[0].state == FailedState::parked);
  CHECK(groups[0].error_class == "std::invalid_argument");
  CHECK(groups[0].messages == 3);
  CHECK(groups[0].first_failed_at <= groups[0].last_failed_at);
  CHECK(groups[1].consumer == "other");
  CHECK(groups[1].error_class == "rejected");
  CHECK(groups[2].state == FailedState::failing);
  CHECK(group_failed(*db.session(), {.limit = 1}).size() == 1);
  CHECK(count_failed(*db.session(), {.limit = 1}).messages == 5);
  CHECK(count_failed(*db.session(), {.consumer = "svc", .state = FailedState::parked}).messages == 3);
  CHECK(count_failed(*db.session(), {.business_key = "nobody"}).messages == 0);
  CHECK_THROWS_AS((void)count_failed(*db.session(), {.business_key = std::string(256, 'x')}), Error);
  const auto until = groups[0].last_failed_at;
  CHECK(group_failed(*db.session(), {.consumer = "svc", .state = FailedState::parked, .failed_until = until})
            .at(0)
            .messages == 3);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  fails(parking, {.business_key = "later"});
  CHECK(group_failed(*db.session(), {.consumer = "svc", .state = FailedState::parked, .failed_until = until})
            .at(0)
            .messages == 3);
  CHECK(discard_failed(*db.session(), {.business_key = "later", .failed_until = until}) == 0);
  CHECK(discard_failed(*db.session(), {.business_key = "later"}) == 1);
  CHECK(group_failed(*db.session(), {.consumer = "svc", .state = FailedState::parked}).size() == 1);
  CHECK(discard_failed(*db.session(), {.consumer = "svc"}) == 4);
  CHECK(group_failed(*db.session()).size() == 1);
  CHECK(group_failed(*db.session(), {.state = FailedState::discarded}).at(0).messages == 5);
}

TEST_CASE("a message is not lost while it is parked and retried concurrently") {
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
        } catch (const std::invalid_argument&) {  // the handler ran and failed
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

}  // namespace
}  // namespace txinbox::test
