// The loop between a broker and a consumer: which messages run, which messages wait, and how the loop ends.

#include <atomic>
#include <chrono>
#include <optional>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/memory_broker.hpp"
#include "support/run_kit.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("run consumes each key once and acknowledges every delivery") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");
  MemoryBroker broker(3);
  for (int i = 0; i < 300; ++i) broker.publish(i % 3, {.body = numbered("order", i / 2)});  // each key twice
  MemorySource source(broker);
  const RunSummary summary = run(source, consumer, body_is_key, add_effect, until_idle());
  CHECK(summary.received == 300);
  CHECK(summary.consumed == 150);
  CHECK(summary.already_consumed == 150);
  CHECK(summary.acknowledged == 300);
  CHECK(summary.dead_letters == 0);
  CHECK(summary.end == RunEnd::idle);
  CHECK(db.effects() == 150);
  CHECK(broker.acknowledged_in_all() == 300);
  CHECK(broker.wrong_acknowledgements() == 0);
  CHECK(source.is_closed());
}

TEST_CASE("a handler learns how often run has given its delivery to the consumer") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service", {.max_attempts = 3});
  MemoryBroker broker(2);
  broker.publish(0, {.body = "fails"});
  broker.publish(0, {.body = "waits for it"});
  broker.publish(1, {.body = "works"});
  MemorySource source(broker);
  std::set<int> runs;  // a handler is also called again if its batch failed
  RunOptions options = until_idle();
  options.backoff = 1ms;
  (void)run(
      source, consumer, body_is_key,
      [&](soci::session&, Delivery& delivery) {
        if (delivery.message().business_key == "fails") {
          runs.insert(delivery.incoming().runs);
          throw std::runtime_error("it fails");
        }
        CHECK(delivery.incoming().runs == 1);
      },
      options);
  CHECK(runs.size() >= 3);
  CHECK(*runs.begin() == 1);
  CHECK(*runs.rbegin() == static_cast<int>(runs.size()));
}

TEST_CASE("a message whose handler asks for a later delivery runs again after the delay, and is no failure") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service", {.max_attempts = 1});
  MemoryBroker broker(0);
  broker.publish("order");
  MemorySource source(broker);
  std::vector<std::chrono::steady_clock::time_point> runs;
  const RunSummary summary = run(
      source, consumer, body_is_key,
      [&](soci::session& sql, Delivery& delivery) {
        add_effect(sql, delivery);
        runs.push_back(std::chrono::steady_clock::now());
        if (runs.size() < 4) throw RetryLater(40ms);
      },
      until_idle());
  CHECK(summary.consumed == 1);
  CHECK(summary.dead_letters == 0);
  REQUIRE(runs.size() >= 4);
  CHECK(runs.back() - runs.front() >= 40ms);
}

TEST_CASE("the stop token of the consumer ends run, also while no message comes") {
  const EffectDatabase db;
  Pool pool = db.pool();
  std::stop_source stop;
  TxConsumer consumer(pool, "order-service", {.stop = stop.get_token()});
  MemoryBroker broker(1);
  MemorySource source(broker);
  const std::jthread stops([&] { stop.request_stop(); });
  const RunSummary summary = run(source, consumer, body_is_key, add_effect);
  CHECK(summary.end == RunEnd::stopped);
  CHECK(summary.received == 0);
}

TEST_CASE("after a stop, run finishes and acknowledges the running batch") {
  EffectDatabase db;
  Pool pool = db.pool();
  std::stop_source stop;
  TxConsumer consumer(pool, "order-service", {.stop = stop.get_token()});
  MemoryBroker broker(1);
  for (int i = 0; i < 100; ++i) broker.publish(numbered("order", i));
  MemorySource source(broker);
  RunOptions options;
  options.batch = 10;
  const RunSummary summary = run(
      source, consumer, body_is_key,
      [&](soci::session& sql, Delivery& delivery) {
        add_effect(sql, delivery);
        if (delivery.message().business_key == "order-25") stop.request_stop();
      },
      options);
  CHECK(static_cast<std::size_t>(db.effects()) == broker.acknowledged());
  CHECK(summary.acknowledged == broker.acknowledged());
  CHECK(summary.end == RunEnd::stopped);
  CHECK(broker.acknowledged() < 100);
  CHECK(source.is_closed());
}

TEST_CASE("the time before the first poll does not count as idle time of run") {
  /// A source whose status takes longer than `idle_exit`.
  class SlowStart : public MemorySource {
   public:
    using MemorySource::MemorySource;
    SourceStatus status() override {
      std::this_thread::sleep_for(50ms);
      return MemorySource::status();
    }
  };
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");
  MemoryBroker broker(1);
  broker.publish("order");
  SlowStart source(broker);
  CHECK(run(source, consumer, body_is_key, add_effect, until_idle()).consumed == 1);
}

TEST_CASE("run throws an error that an operator must fix, and acknowledges nothing") {
  TestDatabase db(TestDatabase::Tables::none);
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");
  MemoryBroker broker(1);
  broker.publish("order");
  MemorySource source(broker);
  CHECK(thrown_by([&] { (void)run(source, consumer, body_is_key, add_effect, until_idle()); }) == "schema_missing");
  CHECK(broker.acknowledged() == 0);
  CHECK(source.is_closed());
}

TEST_CASE("run throws an error of the source after the running handlers have ended, and acknowledges what they did") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");
  MemoryBroker broker(1);
  broker.publish("order");
  MemorySource source(broker);
  CHECK(thrown_by([&] {
          (void)run(
              source, consumer, body_is_key,
              [&](soci::session& sql, Delivery& delivery) {
                add_effect(sql, delivery);
                source.fail(std::make_exception_ptr(Error(ErrorCode::broker_refused, "no such topic")));
              },
              until_idle());
        }) == "broker_refused");
  CHECK(db.effects() == 1);
  CHECK(broker.acknowledged() == 1);
  CHECK(source.is_closed());
}

TEST_CASE("run drops the messages that the broker takes back, and does not acknowledge those that are running" *
          doctest::test_suite("timed")) {
  EffectDatabase db;
  Pool pool = db.pool();
  MemoryBroker broker(2);
  for (int i = 0; i < 200; ++i) broker.publish(i % 2, {.body = numbered("order", i)});
  MemorySource source(broker);
  RunOptions options = until_idle();
  options.batch = 10;
  RunLog log;
  std::size_t dropped = 0;
  const auto listener = on_event([&](const RunEvent& event) {
    if (event.type == RunEventType::dropped) dropped += event.count;
  });
  TxConsumer consumer(pool, "order-service", {.listeners = {listener}});
  const RunSummary summary = run(
      source, consumer, body_is_key,
      [&](soci::session& sql, Delivery& delivery) {
        add_effect(sql, delivery);
        const std::string& key = delivery.message().business_key;
        log.add(key);
        if (key == "order-40" && log.count(key) == 1) {
          source.take_back(0);
          std::this_thread::sleep_for(20ms);
        }
        if (key == "order-41" && log.count(key) <= 6) {  // its lane is paused when the broker takes it back
          if (log.count(key) == 5) source.take_back(1);
          throw std::runtime_error("not yet");
        }
      },
      options);
  CHECK(db.effects() == 200);
  CHECK(summary.consumed == 200);
  CHECK(summary.dropped == dropped);
  CHECK(dropped > 0);
  CHECK(broker.acknowledged_in_all() == 200);
  CHECK(broker.wrong_acknowledgements() == 0);
}

TEST_CASE("while no connection of the pool is free, all messages wait, and no message is lost") {
  EffectDatabase db;
  Pool pool = db.pool(PoolOptions{.connections = 1, .acquire_timeout = 5ms});
  MemoryBroker broker(1);
  for (int i = 0; i < 10; ++i) broker.publish(numbered("order", i));
  MemorySource source(broker);
  std::optional<Connection> held(pool.acquire());
  RunOptions options = until_idle();
  int unavailable = 0;
  const auto listener = on_event([&](const RunEvent& event) {
    if (event.type != RunEventType::unavailable) return;
    CHECK(event.error_class == "acquire_timeout");
    if (++unavailable == 3) held.reset();
  });
  TxConsumer consumer(pool, "order-service", {.listeners = {listener}});
  const RunSummary summary = run(source, consumer, body_is_key, add_effect, options);
  CHECK(unavailable >= 3);
  CHECK(summary.consumed == 10);
  CHECK(broker.acknowledged() == 10);
}

TEST_CASE("run tries the database again after 5 seconds, even if the backoff of a message is longer") {
  EffectDatabase db;
  Pool pool = db.pool(PoolOptions{.connections = 1, .acquire_timeout = 5ms});
  MemoryBroker broker(1);
  broker.publish(numbered("order", 1));
  MemorySource source(broker);
  std::optional<Connection> held(pool.acquire());
  RunOptions options = until_idle();
  options.backoff = options.max_backoff = 1h;
  std::vector<std::chrono::milliseconds> waits;
  const auto listener = on_event([&](const RunEvent& event) {
    if (event.type != RunEventType::unavailable) return;
    waits.push_back(event.backoff);
    held.reset();
  });
  TxConsumer consumer(pool, "order-service", {.listeners = {listener}});
  CHECK(run(source, consumer, body_is_key, add_effect, options).consumed == 1);
  CHECK(waits == std::vector<std::chrono::milliseconds>{5s});
}

TEST_CASE("run holds no more messages than max_in_flight") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");
  MemoryBroker broker(0);
  for (int i = 0; i < 500; ++i) broker.publish(numbered("order", i));
  MemorySource source(broker);
  RunOptions options = until_idle();
  options.max_in_flight = 20;
  CHECK(run(source, consumer, body_is_key, add_effect, options).consumed == 500);
  CHECK(source.largest_poll() == 20);
}

TEST_CASE("under leases, messages run concurrently, and run waits for a message that another worker holds" *
          doctest::test_suite("timed")) {
  EffectDatabase db;
  Pool pool = db.pool(6);
  MemoryBroker broker(0);
  for (int i = 0; i < 20; ++i) broker.publish(numbered("order", i));
  MemorySource source(broker);
  // Another worker holds the lease of order-3 until an operator removes the row.
  LeaseConsumer other(pool, "order-service", {.length = 300ms});
  RunOptions options = until_idle();
  options.workers = 3;
  options.backoff = 10ms;
  std::atomic<int> runs = 0;
  RunSummary summary;
  (void)other.consume({.business_key = "order-3"}, [&](Lease&) {
    std::atomic<bool> was_told = false;
    const auto listener = on_event([&](const RunEvent& event) {
      if (event.type == RunEventType::retry && event.business_key == "order-3") was_told = true;
    });
    LeaseConsumer consumer(pool, "order-service", {.length = 300ms}, {.listeners = {listener}});
    std::jthread consuming([&] {
      summary = run(
          source, consumer, body_is_key,
          [&](Lease& lease) {
            CHECK(lease.delivery().incoming().body == lease.message().business_key);
            ++runs;
          },
          options);
    });
    while (!was_told) std::this_thread::sleep_for(1ms);
    db.run("delete from txinbox_consumed_message where business_key = 'order-3'");  // by an operator
    consuming.join();
    throw RetryLater(0ms);
  });
  CHECK(runs == 20);
  CHECK(summary.consumed == 20);
  CHECK(summary.retries >= 1);
  CHECK(broker.acknowledged() == 20);
}

}  // namespace
}  // namespace txinbox::test
