// Attempts that are counted from their start: a message that kills its process is parked in the end.

#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/in_process.hpp"
#include "support/outcomes.hpp"
#include "support/schema_tools.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

const Message order{.business_key = "order123", .message_id = "m1"};
const TxConsumerOptions counting{.max_attempts = 2, .count_starts = true};
const LeaseOptions counting_leases{.lease = 200ms, .max_attempts = 2, .count_starts = true};

constexpr int died = 9;
void die(soci::session&, Delivery&) { ::_exit(died); }
void die_leased(Lease&) { ::_exit(died); }

long long marks(const TestDatabase& db) {
  return db.number("select count(*) from txinbox_failed_message where running_token is not null");
}

FailedMessage only_failed(const TestDatabase& db) {
  const auto all = list_failed(*db.session());
  REQUIRE(all.size() == 1);
  return all.front();
}

TEST_CASE("a message that kills its process is counted by the next delivery, and parked after max_attempts") {
  const EffectDatabase db;
  const auto killed = [&] {
    return in_process([&] {
      Pool pool = db.pool(2);
      (void)TxConsumer(pool, "svc", counting).consume(order, die);
    });
  };
  CHECK(killed() == died);
  CHECK(marks(db) == 1);
  CHECK(killed() == died);  // counts the first, and dies as well
  CHECK(only_failed(db).attempts == 1);
  CHECK(only_failed(db).deaths == 1);
  CHECK(only_failed(db).last_error == "process died");
  Pool pool = db.pool(2);
  TxConsumer consumer(pool, "svc", counting);
  CHECK(consumer.consume(order, add_effect).outcome == parked);
  CHECK(consumer.consume(order, add_effect).outcome == parked);
  CHECK(only_failed(db).state == FailedState::parked);
  CHECK(only_failed(db).deaths == 2);
  CHECK(db.effects() == 0);
  CHECK(retry_failed(*db.session(), {}) == 1);
  CHECK(consumer.consume(order, add_effect).outcome == consumed);
}

TEST_CASE("without count_starts, a message that kills its process is never counted") {
  const EffectDatabase db;
  for (int i = 0; i < 3; ++i) {
    CHECK(in_process([&] {
            Pool pool = db.pool(1);
            (void)TxConsumer(pool, "svc", {.max_attempts = 1}).consume(order, die);
          }) == died);
  }
  Pool pool = db.pool(1);
  CHECK(TxConsumer(pool, "svc", {.max_attempts = 1}).consume(order, add_effect).outcome == consumed);
  CHECK(list_failed(*db.session()).empty());
}

TEST_CASE("an attempt that ends leaves no mark: consumed, failed, given back") {
  const EffectDatabase db;
  Pool pool = db.pool(2);
  TxConsumer consumer(pool, "svc", {.retry = {.max_attempts = 1}, .max_attempts = 9, .count_starts = true});
  int seen = 0;
  const auto watch = [&](soci::session& sql, Delivery& delivery) {
    seen += static_cast<int>(marks(db));
    add_effect(sql, delivery);
  };
  CHECK(consumer.consume({.business_key = "1"}, watch).outcome == consumed);
  CHECK(seen == 1);
  CHECK(db.number("select count(*) from txinbox_failed_message") == 0);
  CHECK_THROWS((void)consumer.consume(order, [](soci::session&, Delivery&) { throw std::runtime_error("no"); }));
  CHECK(marks(db) == 0);
  CHECK(only_failed(db).attempts == 1);
  CHECK_THROWS(
      (void)consumer.consume(order, [](soci::session&, Delivery&) { throw Error(ErrorCode::acquire_timeout, ""); }));
  CHECK(marks(db) == 0);
  CHECK(only_failed(db).attempts == 1);
  CHECK(consumer.consume(order, watch).outcome == consumed);
  CHECK(consumer.consume(order, watch).outcome == duplicate);
  CHECK(marks(db) == 0);
  CHECK(db.effects() == 2);
}

TEST_CASE("a batch runs message by message, each in its place, and one that fails fails alone") {
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
  CHECK(outcomes(consumer.consume_batch(batch, handler)) == Outcomes{duplicate, failed, not_run});
  CHECK(outcomes(consumer.consume_batch(batch, handler)) == Outcomes{duplicate, parked, duplicate});
  CHECK(db.effects() == 2);
}

TEST_CASE("of messages that were in flight together none is counted, and each then runs alone") {
  const EffectDatabase db;
  CHECK(in_process([&] {
          Pool pool = db.pool(4);
          TxConsumer consumer(pool, "svc", counting);
          LeaseConsumer leases(pool, "leases", {.lease = 200ms, .max_attempts = 2, .count_starts = true});
          // The first waits in its handler for the other: on SQLite, where only one transaction writes, the other
          // is under a lease.
          std::atomic<bool> other_runs = false;
          std::thread other;
          (void)leases.consume({.business_key = "innocent"}, [&](Lease&) {
            (void)leases.consume({.business_key = "nested"}, [](Lease&) {});  // on the same thread: no deadlock
            other =
                std::thread([&] { (void)consumer.consume(order, [&](soci::session&, Delivery&) { ::_exit(died); }); });
            while (!other_runs) std::this_thread::sleep_for(1ms);
          });
        }) == died);
  CHECK(marks(db) == 2);
  CHECK(db.number("select sum(running_alone) from txinbox_failed_message") == 0);
  Pool pool = db.pool(4);
  CHECK(TxConsumer(pool, "svc", counting).consume(order, add_effect).outcome == consumed);
  CHECK(list_failed(*db.session()).empty());
  std::this_thread::sleep_for(250ms);
  CHECK(LeaseConsumer(pool, "leases", counting_leases).consume({.business_key = "innocent"}, [](Lease&) {}).outcome ==
        consumed);
  CHECK(marks(db) == 0);
}

TEST_CASE("the mark of an attempt that runs elsewhere is waited for, not counted") {
  const EffectDatabase db;
  Pool pool = db.pool(2);
  TxConsumer consumer(pool, "svc", counting);
  // As another process would have left it that ends before we have looked again: without one.
  CHECK_THROWS((void)consumer.consume(order, [](soci::session&, Delivery&) { throw std::runtime_error("no"); }));
  db.run("update txinbox_failed_message set running_alone = 1, running_token = " +
         here<std::string>("x'00112233445566778899aabbccddeeff'", "x'00112233445566778899aabbccddeeff'",
                           "'00112233-4455-6677-8899-aabbccddeeff'"));
  std::atomic<bool> holds = false;
  std::thread elsewhere([&] {
    // It holds the key, and ends by failing: its count removes the mark.
    Pool other = db.pool(1);
    try {
      (void)TxConsumer(other, "svc", {.max_attempts = 9}).consume(order, [&](soci::session&, Delivery&) {
        holds = true;
        std::this_thread::sleep_for(300ms);
        throw std::runtime_error("failed elsewhere");
      });
    } catch (const std::runtime_error&) {
    }
  });
  while (!holds) std::this_thread::sleep_for(1ms);
  const Result result = consumer.consume(order, add_effect);
  elsewhere.join();
  CHECK(result.outcome == consumed);
  CHECK(db.number("select attempts from txinbox_failed_message") >= 1);
}

TEST_CASE("a lease's handler that kills its process is parked after max_attempts") {
  const EffectDatabase db;
  const auto killed = [&] {
    return in_process([&] {
      Pool pool = db.pool(2);
      (void)LeaseConsumer(pool, "svc", counting_leases).consume(order, die_leased);
    });
  };
  CHECK(killed() == died);
  std::this_thread::sleep_for(250ms);
  CHECK(killed() == died);
  std::this_thread::sleep_for(250ms);
  Pool pool = db.pool(2);
  LeaseConsumer consumer(pool, "svc", counting_leases);
  CHECK(consumer.consume(order, [](Lease&) { FAIL("a handler ran that must not"); }).outcome == parked);
  CHECK(only_failed(db).deaths == 2);
  CHECK(only_failed(db).state == FailedState::parked);
  CHECK(retry_failed(*db.session(), {}) == 1);
  CHECK(consumer.consume(order, [](Lease&) {}).outcome == consumed);
  CHECK(marks(db) == 0);
}

TEST_CASE("count_starts is refused on a session of the caller's") {
  const EffectDatabase db;
  const auto sql = db.session();
  CHECK_THROWS_AS(TxConsumer(*sql, "svc", counting), Error);
}

TEST_CASE("many threads with count_starts consume each key once and leave no mark") {
  const EffectDatabase db;
  Pool pool = db.pool(4);
  TxConsumer consumer(pool, "svc", counting);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) {
        try {
          (void)consumer.consume({.business_key = std::to_string(i)}, add_effect);
        } catch (...) {
          FAIL_CHECK("a delivery failed");
        }
      }
    });
  }
  for (auto& each : threads) each.join();
  CHECK(db.effects() == 10);
  CHECK(marks(db) == 0);
}

}  // namespace
}  // namespace txinbox::test
