// Calls that `run` refuses, and what a handler gets without `run`.

#include <chrono>
#include <optional>
#include <string>
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

TEST_CASE("a handler gets the delivery of the broker only if run has called it") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");
  MemoryBroker broker(1);
  broker.publish(0, {.body = "{}", .key = "k", .headers = {{"ce_id", "7"}, {"ce_id", "7"}}});
  MemorySource source(broker);
  int runs = 0;
  (void)run(
      source, consumer, key_from("p:{@header:ce_id}"),
      [&](soci::session&, Delivery& delivery) {
        ++runs;
        CHECK(delivery.message().business_key == "p:7");
        CHECK(delivery.message().payload == "{}");
        const Incoming& incoming = delivery.incoming();
        CHECK(incoming.body == "{}");
        CHECK(incoming.key == "k");
        CHECK(incoming.id == "0@0");
        CHECK(incoming.lane == 0);
        CHECK(incoming.headers.size() == 2);
        CHECK_FALSE(incoming.header("other"));
      },
      until_idle());
  CHECK(runs == 1);
  CHECK(thrown_by([&] {
          (void)consumer.consume({.business_key = "alone"},
                                 [](soci::session&, Delivery& delivery) { (void)delivery.incoming(); });
        }) == "invalid_argument");
}

TEST_CASE("run refuses invalid options") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");
  MemoryBroker broker(1);
  MemorySource source(broker);
  const auto refused = [&](RunOptions options) {
    return thrown_by([&] { (void)run(source, consumer, body_is_key, add_effect, options); }) == "invalid_argument";
  };
  CHECK(refused({.batch = 0}));
  CHECK(refused({.workers = 0}));
  CHECK(refused({.max_in_flight_bytes = 0}));
  CHECK(refused({.backoff = 2s, .max_backoff = 1s}));
  CHECK(refused({.idle_exit = -1ms}));
  CHECK(refused({.idle_exit = 100'001 * 24h}));
  CHECK(refused({.status_interval = 0ms}));
  // Times that do not fit into the clock.
  CHECK(refused({.status_interval = std::chrono::milliseconds::max()}));
  CHECK(refused({.max_backoff = std::chrono::milliseconds::max()}));
  CHECK(thrown_by([&] { (void)run(source, consumer, MessageOf(), add_effect); }) == "invalid_argument");
  CHECK(thrown_by([&] { (void)run(source, consumer, body_is_key, Handler()); }) == "invalid_argument");
  CHECK(thrown_by([&] { (void)key_from("@header:"); }) == "invalid_argument");
  CHECK(thrown_by([&] { (void)key_from("no pointer"); }) == "invalid_argument");
}

}  // namespace
}  // namespace txinbox::test
