// The simulated brokers: what they forget, and what they deliver again.

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/source.hpp>

#include "sim/broker.hpp"
#include "sim/threads.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;
using sim::Broker;
using sim::BrokerKind;
using sim::SimSource;
using sim::Threads;

constexpr std::size_t sent = 20;

/// Runs a test with a broker of each kind, which has 20 messages.
void for_each_broker(const std::function<void(Broker&)>& test) {
  for (const BrokerKind kind : {BrokerKind::log, BrokerKind::fifo, BrokerKind::queue}) {
    CAPTURE(static_cast<int>(kind));
    Threads::run({.seed = 1}, [&] {
      const std::unique_ptr<Broker> broker = sim::make_broker(kind, 1);
      broker->on_end = [](const sim::BrokerMessage&, const DeadLetter*) {};
      for (std::size_t i = 0; i < sent; ++i) broker->publish(0, {.id = std::to_string(i), .body = std::to_string(i)});
      test(*broker);
    });
  }
}

/// Takes all messages, and acknowledges them.
std::vector<std::string> take_all(SimSource& source) {
  std::vector<std::string> bodies;
  while (true) {
    const std::vector<Incoming> taken = source.poll(100, 10ms);
    if (taken.empty()) return bodies;
    for (const Incoming& each : taken) {
      bodies.emplace_back(each.body);
      source.acknowledge(std::vector{&each});
    }
  }
}

TEST_CASE("simulated broker: what is acknowledged does not come again, unless the broker forgets it") {
  for_each_broker([](Broker& broker) {
    const auto source = broker.connect();
    CHECK(take_all(*source).size() == sent);
    CHECK(take_all(*source).empty());
    std::size_t again = 0;
    for (int i = 0; i < 10; ++i) {
      broker.forget();
      const std::size_t forgotten = take_all(*source).size();
      CHECK(forgotten <= 10);
      again += forgotten;
    }
    CHECK(again > 0);
  });
}

TEST_CASE("simulated broker: a topic that is made anew has what was not acknowledged, and nobody holds a message") {
  for_each_broker([](Broker& broker) {
    const auto source = broker.connect();
    const std::vector<Incoming> taken = source->poll(5, 10ms);
    REQUIRE(taken.size() == 5);
    source->acknowledge(std::vector{&taken[0]});
    broker.recreate();
    CHECK_FALSE(source->holds(taken[1]));
    source->acknowledge(std::vector{&taken[4]});  // it acknowledges nothing
    const auto take_again = [&] {
      const std::size_t first = take_all(*source).size();  // 0 if a channel has ended
      return first + take_all(*source).size();
    };
    CHECK(take_again() >= sent - 1);
    std::size_t acknowledged = 0;
    for (int i = 0; i < 20; ++i) {
      broker.recreate();
      acknowledged += take_again();
    }
    CHECK(acknowledged > 0);
  });
}

TEST_CASE("simulated broker: a queue with a limit sets a message aside after its third delivery") {
  Threads::run({.seed = 1}, [&] {
    const auto broker = sim::make_broker(BrokerKind::queue, 1);
    broker->faults.has_delivery_limit = true;
    broker->on_end = [](const sim::BrokerMessage&, const DeadLetter*) {};
    broker->publish(0, {.id = "a", .body = "a"});
    for (int i = 1; i <= 3; ++i) {
      const std::vector<Incoming> taken = broker->connect()->poll(1, 10ms);
      REQUIRE(taken.size() == 1);
      CHECK(taken[0].deliveries == i);
    }
    const auto source = broker->connect();
    broker->step();
    CHECK(source->poll(1, 10ms).empty());
    CHECK(broker->waiting([](auto, const auto&) { return true; }));
    Threads::instance()->sleep_for(60s);
    broker->step();
    const std::vector<Incoming> taken = broker->connect()->poll(1, 10ms);
    REQUIRE(taken.size() == 1);
    CHECK(taken[0].deliveries == 1);
  });
}

}  // namespace
}  // namespace txinbox::test
