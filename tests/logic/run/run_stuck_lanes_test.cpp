// The loop between a broker and a consumer: several lanes whose first message fails, and the other lanes.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/memory_broker.hpp"
#include "support/run_kit.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

/// Fails each message whose key begins with "bad". Stops `run` when the others are acknowledged, or after 10 minutes.
class FailingLanes {
 public:
  FailingLanes(const MemoryBroker& broker, std::size_t good) : broker_(broker), good_(good) {}

  void handle(const Message& message) {
    if (!message.business_key.starts_with("bad")) return;
    if (broker_.acknowledged_in_all() >= good_ || std::chrono::steady_clock::now() > give_up_) stop_.request_stop();
    throw std::runtime_error("no stock");
  }

  static RunOptions options() {
    RunOptions options = until_idle();
    options.idle_exit.reset();
    return options;
  }

  std::stop_token stop() const { return stop_.get_token(); }

 private:
  const MemoryBroker& broker_;
  const std::size_t good_;
  const std::chrono::steady_clock::time_point give_up_ = std::chrono::steady_clock::now() + 10min;
  std::stop_source stop_;
};

void publish(MemoryBroker& broker, int lane, const std::string& prefix, int count) {
  for (int i = 0; i < count; ++i) broker.publish(lane, {.body = numbered(numbered(prefix, lane), i)});
}

TEST_CASE("several lanes that fail leave room for the other lanes, although each holds few messages") {
  EffectDatabase db;
  Pool pool = db.pool();
  MemoryBroker broker(5);
  for (int lane = 0; lane < 3; ++lane) publish(broker, lane, "bad", 15);
  for (int lane = 3; lane < 5; ++lane) publish(broker, lane, "good", 100);
  FailingLanes failing(broker, 200);
  TxConsumer consumer(pool, "order-service", {.stop = failing.stop()});
  RunOptions options = failing.options();
  options.batch = 10;  // so `run` holds 40 messages
  MemorySource source(broker);
  const RunSummary summary = run(
      source, consumer, body_is_key,
      [&](soci::session& sql, Delivery& delivery) {
        add_effect(sql, delivery);
        failing.handle(delivery.message());
      },
      options);
  CHECK(summary.consumed == 200);
  CHECK(broker.acknowledged_in_all() == 200);
  CHECK(broker.wrong_acknowledgements() == 0);
  CHECK(source.pauses() > 0);
  CHECK(source.pauses() <= 3);
  CHECK(source.resumes() == 0);
}

TEST_CASE("under leases, lanes that fail leave room for the other lanes") {
  EffectDatabase db;
  Pool pool = db.pool();
  MemoryBroker broker(21);
  for (int lane = 0; lane < 20; ++lane) publish(broker, lane, "bad", 1);
  publish(broker, 20, "good", 30);
  FailingLanes failing(broker, 30);
  LeaseConsumer consumer(pool, "order-service", {}, {.stop = failing.stop()});
  MemorySource source(broker);
  const RunSummary summary = run(
      source, consumer, body_is_key, [&](Lease& lease) { failing.handle(lease.message()); }, failing.options());
  CHECK(summary.consumed == 30);
  CHECK(broker.acknowledged(20) == 30);
  CHECK(source.pauses() <= 20);
  CHECK(source.resumes() == 0);
}

TEST_CASE("lanes that fail leave room for the bytes of the other lanes") {
  EffectDatabase db;
  Pool pool = db.pool();
  MemoryBroker broker(4);
  for (int lane = 0; lane < 3; ++lane) publish(broker, lane, "bad" + std::string(200, 'x'), 3);
  FailingLanes failing(broker, 50);
  RunOptions options = failing.options();
  options.max_in_flight_bytes = 1'000;
  bool has_failed = false;
  const auto listener = on_event([&](const RunEvent& event) {
    if (event.type != RunEventType::retry || std::exchange(has_failed, true)) return;
    publish(broker, 3, "good" + std::string(200, 'x'), 50);  // not earlier, or one poll would get all messages
  });
  TxConsumer consumer(pool, "order-service", {.stop = failing.stop(), .listeners = {listener}});
  MemorySource source(broker);
  const RunSummary summary = run(
      source, consumer, body_is_key, [&](soci::session&, Delivery& delivery) { failing.handle(delivery.message()); },
      options);
  CHECK(summary.consumed == 50);
  CHECK(broker.acknowledged(3) == 50);
  CHECK(source.pauses() <= 3);
  CHECK(source.resumes() == 0);
}

TEST_CASE("lanes that were paused continue when their messages succeed") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");
  MemoryBroker broker(4);
  for (int lane = 0; lane < 4; ++lane) publish(broker, lane, "order", 60);
  RunOptions options = until_idle();
  options.batch = 5;
  RunLog log;
  MemorySource source(broker);
  const RunSummary summary =
      run(source, consumer, body_is_key,
          failing_at_first(log, 8, [](const std::string& key) { return key.ends_with("-2"); }), options);
  CHECK(summary.consumed == 240);
  CHECK(broker.acknowledged_in_all() == 240);
  CHECK(broker.wrong_acknowledgements() == 0);
  CHECK(source.pauses() > 0);
  CHECK(source.resumes() == source.pauses());
}

TEST_CASE("a slow handler of one lane keeps no other worker from the other lanes") {
  EffectDatabase db;
  Pool pool = db.pool();
  LeaseConsumer consumer(pool, "order-service");
  MemoryBroker broker(4);
  for (int lane = 0; lane < 4; ++lane) publish(broker, lane, "order", 100);
  RunOptions options = until_idle();
  options.workers = 2;
  MemorySource source(broker);
  const auto give_up = std::chrono::steady_clock::now() + 10min;
  std::size_t others = 0;
  static_cast<void>(run(
      source, consumer, body_is_key,
      [&](Lease& lease) {
        if (lease.message().business_key != "order-0-0") return;
        while (others < 300 && std::chrono::steady_clock::now() < give_up) {
          others = broker.acknowledged(1) + broker.acknowledged(2) + broker.acknowledged(3);
          std::this_thread::sleep_for(1ms);
        }
      },
      options));
  CHECK(others == 300);
  CHECK(broker.acknowledged_in_all() == 400);
  CHECK(broker.wrong_acknowledgements() == 0);
}

TEST_CASE("without lanes, any number of messages that wait for another try leave room for others") {
  EffectDatabase db;
  Pool pool = db.pool();
  MemoryBroker broker(0);
  publish(broker, 0, "bad", 450);
  publish(broker, 0, "good", 100);
  FailingLanes failing(broker, 100);
  TxConsumer consumer(pool, "order-service", {.stop = failing.stop()});
  MemorySource source(broker);
  const RunSummary summary = run(
      source, consumer, body_is_key, [&](soci::session&, Delivery& delivery) { failing.handle(delivery.message()); },
      failing.options());
  CHECK(summary.consumed == 100);
  CHECK(broker.acknowledged_in_all() == 100);
}

TEST_CASE("a lane that waits is read again from the broker, if what waits exceeds max_waiting") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");
  MemoryBroker broker(4);
  for (int lane = 0; lane < 4; ++lane) publish(broker, lane, "order", 60);
  RunOptions options = until_idle();
  options.batch = 5;
  options.max_waiting = 5;
  RunLog log;
  MemorySource source(broker);
  source.rewinds_lanes = true;
  const RunSummary summary =
      run(source, consumer, body_is_key,
          failing_at_first(log, 8, [](const std::string& key) { return key.ends_with("-2"); }), options);
  CHECK(summary.received == 240);
  CHECK(summary.consumed == 240);
  CHECK(broker.acknowledged_in_all() == 240);
  CHECK(broker.wrong_acknowledgements() == 0);
  CHECK(source.rewinds() > 0);
}

TEST_CASE("if the source loses one message of a lane, its later messages wait for it") {
  EffectDatabase db;
  Pool pool = db.pool();
  MemoryBroker broker(2);
  for (int lane = 0; lane < 2; ++lane) publish(broker, lane, "order", 60);
  RunOptions options = until_idle();
  options.batch = 5;
  RunLog log;
  MemorySource source(broker);
  bool is_lost = false;
  const auto listener = on_event([&](const RunEvent& event) {
    if (event.type == RunEventType::retry && !std::exchange(is_lost, true)) source.lose(0, 2);
  });
  TxConsumer consumer(pool, "order-service", {.listeners = {listener}});
  const RunSummary summary =
      run(source, consumer, body_is_key,
          failing_at_first(log, 8, [](const std::string& key) { return key == "order-0-2"; }), options);
  CHECK(summary.consumed == 120);
  CHECK(summary.dropped > 1);
  CHECK(broker.acknowledged_in_all() == 120);
  CHECK(broker.wrong_acknowledgements() == 0);
  const auto keys = log.keys();
  for (int place = 3; place < 60; ++place) {
    CHECK(std::ranges::find(keys, numbered("order-0", place)) > std::ranges::find(keys, "order-0-2"));
  }
}

}  // namespace
}  // namespace txinbox::test
