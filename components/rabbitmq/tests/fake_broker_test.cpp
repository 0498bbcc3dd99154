// A RabbitMQ source with a broker that misbehaves in ways in which a real broker cannot be told to.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/rabbitmq.hpp>

#include "fake_broker.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// Uses a source until the broker is silent, and stops it. Returns the longest time that a call took, and for the last
/// entry, the time from the stop to the end.
std::vector<Clock::duration> times_of_calls(const Misbehaviour& how) {
  FakeBroker broker(how);
  const auto source = open_rabbitmq(broker.options());
  std::vector<Clock::duration> times;
  const auto measured = [&](const auto& call) {
    const auto start = Clock::now();
    call();
    times.push_back(Clock::now() - start);
  };
  const bool is_silent_at_close = how.silent_at == std::pair{20, 40} || how.silent_at == std::pair{10, 50};
  const auto give_up = Clock::now() + 30s;
  bool has_letter = false;
  while (!broker.is_silent() && Clock::now() < give_up && !(is_silent_at_close && has_letter)) {
    std::vector<Incoming> incoming;
    measured([&] { incoming = source->poll(10, 100ms); });
    for (const Incoming& each : incoming) {
      std::vector<DeadLetter> letters{{.incoming = &each, .reason = "rejected"}};
      measured([&] { source->dead_letter(letters); });
      has_letter = true;
    }
  }
  measured([&] { (void)source->poll(10, 100ms); });
  measured([&] {
    source->wake();
    (void)source->poll(0, 1s);
    source->close();
  });
  if (!broker.is_silent()) times.push_back(Clock::duration::max());
  return times;
}

TEST_CASE("RabbitMQ: no call waits for longer than 5 s for a broker that becomes silent at any step") {
  struct Case {
    std::string name;
    Misbehaviour how;
    std::vector<Clock::duration> times = {};
  };
  std::vector<Case> cases;
  const std::vector<std::pair<int, int>> consuming{{0, 0},   {10, 11}, {10, 40}, {20, 10}, {50, 10},
                                                   {60, 10}, {60, 20}, {60, 60}, {20, 40}, {10, 50}};
  const std::vector<std::pair<int, int>> of_letters{{0, 0}, {10, 11}, {10, 40}, {20, 10}, {85, 10}, {60, 40}, {10, 50}};
  for (const bool sends_half : {false, true}) {
    for (const int connection : {0, 1}) {
      for (const auto& step : connection == 0 ? consuming : of_letters) {
        cases.push_back({.name = std::to_string(connection) + ": " + std::to_string(step.first) + "." +
                                 std::to_string(step.second) + (sends_half ? ", half of the answer" : ""),
                         .how = {.silent_at = step, .connection = connection, .sends_half = sends_half}});
      }
    }
  }
  std::vector<std::thread> threads;
  threads.reserve(cases.size());
  for (Case& each : cases) threads.emplace_back([&each] { each.times = times_of_calls(each.how); });
  for (std::thread& each : threads) each.join();
  for (const Case& each : cases) {
    INFO(each.name);
    CHECK(*std::ranges::max_element(each.times) < 5s);
  }
}

TEST_CASE("RabbitMQ: if the length of the queue is refused, the source goes on without it") {
  for (const bool refuses : {false, true}) {
    FakeBroker broker({.refuses_length = refuses});
    const auto source = open_rabbitmq(broker.options());
    std::vector<Incoming> incoming;
    for (int i = 0; i < 20; ++i) {
      for (Incoming& each : source->poll(10, 50ms)) incoming.push_back(std::move(each));
    }
    CHECK(incoming.size() == 1);
    CHECK(source->status().connected);
    CHECK(source->status().lag.has_value() == !refuses);
    CHECK(broker.connections() == 2);  // one of them asks for the right to publish dead letters
  }
}

TEST_CASE("RabbitMQ: the wait for the next connection grows until a message was acknowledged") {
  FakeBroker broker({.ends_connections = true});
  const auto source = open_rabbitmq(broker.options());
  const auto end = Clock::now() + 4s;
  while (Clock::now() < end) (void)source->poll(10, 100ms);
  CHECK(broker.connections() >= 2);
  CHECK(broker.connections() < 9);  // without a growing wait, there are more than 20
}

}  // namespace
}  // namespace txinbox::test
