// `run` with `RunOptions::hold_parked`: later messages wait for a parked one until an operator has decided.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/failed_messages.hpp>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/eventually.hpp"
#include "support/memory_broker.hpp"
#include "support/run_kit.hpp"

namespace txinbox::test {
namespace {

/// Twelve messages in one lane. The handler fails for order-3 until it is repaired.
struct HoldingRun {
  EffectDatabase db;
  Pool pool = db.pool(3);
  MemoryBroker broker{1};
  RunOptions options = until_idle();
  ConsumerOptions consumer_options{.max_attempts = 2};
  RunLog log;
  std::atomic<bool> is_repaired = false;
  std::atomic<int> held = 0;

  HoldingRun() {
    for (int i = 0; i < 12; ++i) broker.publish(0, {.body = numbered("order", i), .key = numbered("key", i % 3)});
    options.hold_parked = true;
    options.batch = 5;
    options.workers = 2;
    consumer_options.listeners.push_back(on_event([this](const RunEvent& event) {
      if (event.type == RunEventType::held && event.business_key == "order-3") ++held;
    }));
  }

  std::function<void()> fail = [] { throw std::runtime_error("no stock"); };

  void handle(soci::session& sql, Delivery& delivery) {
    add_effect(sql, delivery);
    if (delivery.message().business_key == "order-3" && !is_repaired) fail();
    log.add(delivery.message().business_key);
  }

  /// Runs until order-3 is held and these many messages have taken effect.
  RunSummary run_until_held(long long effects) {
    held = 0;
    std::stop_source stop;
    ConsumerOptions stopped = consumer_options;
    stopped.stop = stop.get_token();
    const std::jthread operator_thread([&] {
      CHECK(eventually([&] { return held > 0 && db.effects() == effects; }));
      stop.request_stop();
    });
    return run_once(stopped);
  }

  RunSummary run_once(const ConsumerOptions& with) {
    TxConsumer consumer(pool, "order-service", with);
    MemorySource source(broker);
    return run(
        source, consumer, body_is_key, [this](soci::session& sql, Delivery& delivery) { handle(sql, delivery); },
        options);
  }

  void check_order_kept() const {
    const auto keys = log.keys();
    for (const char* later : {"order-6", "order-9"}) {
      CHECK(std::ranges::find(keys, "order-3") < std::ranges::find(keys, later));
    }
    CHECK(db.effects() == 12);
    CHECK(broker.acknowledged() == 12);
    CHECK(broker.letters().empty());
    CHECK(broker.wrong_acknowledgements() == 0);
  }
};

TEST_CASE("a parked message is held also after a restart, and its order is kept when an operator lets it run") {
  HoldingRun t;
  long long others = 3;  // those in front of it
  SUBCASE("by lane") {}
  SUBCASE("by lane, without a breaker") { t.options.breaker.failures = 0; }
  SUBCASE("by key") {
    t.options.order = Ordering::key;
    others = 9;  // all but the three with its key from it on
  }
  CHECK(t.run_until_held(others).dead_letters == 0);
  CHECK(t.db.claim_of("order-3") == "parked");
  CHECK(t.broker.acknowledged() == 3);

  t.is_repaired = true;
  CHECK(t.run_until_held(others).consumed == 0);
  CHECK(t.broker.acknowledged() == 3);

  CHECK(retry_failed(t.pool.acquire().session(), {.consumer = "order-service"}) == 1);
  (void)t.run_once(t.consumer_options);
  t.check_order_kept();
}

TEST_CASE("a message whose handler refuses it with an error of txinbox is parked, and keeps its order") {
  HoldingRun t;
  for (const ErrorCode code : {ErrorCode::unreadable, ErrorCode::invalid_key, ErrorCode::invalid_message}) {
    SUBCASE(std::string(to_string(code)).c_str()) {
      t.fail = [code] { throw Error(code, "the handler cannot use it"); };
    }
  }
  CHECK(t.run_until_held(3).dead_letters == 0);
  CHECK(t.db.claim_of("order-3") == "parked");
  t.is_repaired = true;
  CHECK(retry_failed(t.pool.acquire().session(), {.consumer = "order-service"}) == 1);
  (void)t.run_once(t.consumer_options);
  t.check_order_kept();
}

TEST_CASE("while a message is held, the listeners of the consumer get no event of a delivery for each look") {
  HoldingRun t;
  std::atomic<int> parked = 0;
  std::stop_source stop;
  const std::jthread operator_thread([&] {
    CHECK(eventually([&] { return t.held > 0; }));
    std::this_thread::sleep_for(std::chrono::seconds(1));  // ten looks or so
    stop.request_stop();
  });
  ConsumerOptions options = t.consumer_options;
  options.stop = stop.get_token();
  options.listeners.push_back(on_event([&](const Event& event) {
    if (event.type == EventType::parked) ++parked;
  }));
  TxConsumer consumer(t.pool, "order-service", options);
  MemorySource source(t.broker);
  (void)run(
      source, consumer, body_is_key, [&](soci::session& sql, Delivery& delivery) { t.handle(sql, delivery); },
      t.options);
  CHECK(parked <= 2);
}

TEST_CASE("the operator decides while run waits") {
  HoldingRun t;
  bool is_retried = false;
  SUBCASE("retry") { is_retried = true; }
  SUBCASE("discard") {}
  const std::jthread operator_thread([&] {
    CHECK(eventually([&] { return t.held > 0; }));
    const Connection connection = t.pool.acquire();
    if (is_retried) {
      t.is_repaired = true;
      CHECK(retry_failed(connection.session(), {.consumer = "order-service"}) == 1);
    } else {
      CHECK(discard_failed(connection.session(), {.consumer = "order-service"}) == 1);
    }
  });
  const RunSummary summary = t.run_once(t.consumer_options);
  CHECK(summary.consumed == (is_retried ? 12 : 11));
  CHECK(summary.discarded == (is_retried ? 0 : 1));
  CHECK(t.broker.acknowledged() == 12);
  if (is_retried) t.check_order_kept();
}

TEST_CASE("a message that is parked under a lease is held") {
  HoldingRun t;
  std::stop_source stop;
  t.consumer_options.stop = stop.get_token();
  const std::jthread operator_thread([&] {
    CHECK(eventually([&] { return t.held > 0; }));
    stop.request_stop();
  });
  LeaseConsumer consumer(t.pool, "order-service", {}, t.consumer_options);
  MemorySource source(t.broker);
  const RunSummary summary = run(
      source, consumer, body_is_key,
      [&](Lease& lease) {
        if (lease.delivery().message().business_key == "order-3") throw Error(ErrorCode::rejected, "never");
      },
      t.options);
  CHECK(summary.consumed == 3);
  CHECK(summary.dead_letters == 0);
  CHECK(t.broker.acknowledged() == 3);
}

TEST_CASE("without an order, a parked message becomes a dead letter") {
  HoldingRun t;
  t.options.order = Ordering::key;
  MemoryBroker broker(1);
  for (int i = 0; i < 5; ++i) broker.publish(numbered("order", i));  // without a key of the broker
  TxConsumer consumer(t.pool, "order-service", {.max_attempts = 2});
  MemorySource source(broker);
  const RunSummary summary = run(
      source, consumer, body_is_key, [&](soci::session& sql, Delivery& delivery) { t.handle(sql, delivery); },
      t.options);
  CHECK(summary.consumed == 4);
  CHECK(summary.dead_letters == 1);
  CHECK(t.held == 0);
}

}  // namespace
}  // namespace txinbox::test
