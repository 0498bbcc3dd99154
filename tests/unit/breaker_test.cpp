// The breaker of `run`: a handler that fails for all messages, and one that fails for some of them.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include "support/scheduler_world.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

constexpr int attempts = 3;
constexpr std::size_t per_lane = 60;

RunOptions options_with_breaker(Ordering order = Ordering::lane) {
  RunOptions options = SchedulerWorld::options_of_test();
  options.order = order;
  options.max_in_flight = 50;
  options.breaker = {.failures = 20, .pause = 5s, .max_pause = 5min};
  return options;
}

int counted(const SchedulerWorld& world) {
  int sum = 0;
  for (const auto& [id, failures] : world.failures) sum += failures;
  return sum;
}

std::ptrdiff_t count_of(const SchedulerWorld& world, RunEventType type) {
  return std::ranges::count(world.events, type);
}

TEST_CASE("a handler that fails for all messages makes no dead letter, and counts no failure of a message") {
  for (const std::size_t lanes : {0U, 1U, 4U}) {
    for (const Ordering order : {Ordering::lane, Ordering::key}) {
      for (const std::size_t job_size : {1U, 3U}) {
        CAPTURE(lanes);
        CAPTURE(to_string(order));
        CAPTURE(job_size);
        SchedulerWorld world(lanes, per_lane, options_with_breaker(order), job_size, false, 1, attempts);
        world.handler_works = false;
        world.run_for(1h);
        CHECK(count_of(world, RunEventType::tripped) == 1);
        CHECK(world.dead.empty());
        CHECK(counted(world) == 0);
        world.handler_works = true;
        world.run_for(10min);
        CHECK(count_of(world, RunEventType::resumed) == 1);
        CHECK(world.acknowledged_in_all() == std::max<std::size_t>(lanes, 1) * per_lane);
        CHECK(world.dead.empty());
        CHECK(world.problem() == "");
      }
    }
  }
}

TEST_CASE("a handler that stops working counts only the failures of the jobs that run at this time") {
  const RunOptions options = options_with_breaker();
  SchedulerWorld world(4, per_lane, options, 3, false, 1, attempts);
  for (int turn = 0; turn < 100 && world.acknowledged_in_all() < 30; ++turn) world.turn();
  world.handler_works = false;
  world.run_for(1h);
  CHECK(count_of(world, RunEventType::tripped) == 1);
  CHECK(counted(world) <= static_cast<int>(options.workers) * 3);
  world.handler_works = true;
  world.run_for(10min);
  CHECK(world.acknowledged_in_all() == 4 * per_lane);
  CHECK(world.dead.empty());
  CHECK(world.problem() == "");
}

TEST_CASE("a tripped breaker tries one message at a time, in rounds with longer and longer pauses") {
  SchedulerWorld world(0, per_lane, options_with_breaker(), 3, false, 1, attempts);
  world.handler_works = false;
  const auto runs = [&] {
    int sum = 0;
    for (std::size_t place = 0; place < per_lane; ++place) sum += world.runs({0, place});
    return sum;
  };
  std::vector<SchedulerWorld::Time> rounds;
  const SchedulerWorld::Time end = world.now + 1h;
  while (world.now < end) {
    const int before = runs();
    if (!world.turn()) world.now += 50ms;
    const bool is_tripped = count_of(world, RunEventType::tripped) == 1;
    if (is_tripped && runs() > before && (rounds.empty() || world.now - rounds.back() > 1s))
      rounds.push_back(world.now);
    if (is_tripped) CHECK(world.running() <= 1);
  }
  REQUIRE(rounds.size() > 10);
  CHECK(rounds.size() < 20);
  CHECK(rounds[1] - rounds[0] < 15s);
  for (std::size_t i = 1; i < 5; ++i) CHECK(rounds[i + 1] - rounds[i] > rounds[i] - rounds[i - 1]);
  CHECK(rounds.back() - rounds[rounds.size() - 2] >= 5min);
}

TEST_CASE("messages that fail among others are parked after the same number of failures as without a breaker") {
  for (const std::size_t lanes : {0U, 1U, 4U}) {
    for (const Ordering order : {Ordering::lane, Ordering::key}) {
      CAPTURE(lanes);
      CAPTURE(to_string(order));
      SchedulerWorld world(lanes, per_lane, options_with_breaker(order), 3, false, 1, attempts);
      std::set<SchedulerWorld::Id> poison;
      for (std::size_t place = 0; place < per_lane; place += 7) poison.insert({0, place});
      for (const auto& id : poison) world.fates[id] = {Fate::fails};
      world.run_for(10min);
      CHECK(world.dead == poison);
      for (const auto& id : poison) CHECK(world.failures[id] == attempts);
      CHECK(world.acknowledged_in_all() == std::max<std::size_t>(lanes, 1) * per_lane);
      CHECK(count_of(world, RunEventType::tripped) == 0);
      CHECK(world.problem() == "");
    }
  }
}

TEST_CASE("a handler that stops working trips the breaker although its first failures park their messages") {
  const RunOptions options = options_with_breaker();
  SchedulerWorld world(0, per_lane, options, 3, false, 1, 1);
  for (int turn = 0; turn < 100 && world.acknowledged_in_all() < 10; ++turn) world.turn();
  world.handler_works = false;
  world.run_for(1h);
  CHECK(count_of(world, RunEventType::tripped) == 1);
  CHECK(world.dead.size() <= options.workers * 3);
  world.handler_works = true;
  world.run_for(10min);
  CHECK(world.acknowledged_in_all() == per_lane);
  CHECK(world.problem() == "");
}

TEST_CASE("messages that always fail at the front of all lanes do not hold up the others for ever") {
  for (const std::size_t lanes : {1U, 4U}) {
    CAPTURE(lanes);
    SchedulerWorld world(lanes, per_lane, options_with_breaker(), 3, false, 1, attempts);
    std::set<SchedulerWorld::Id> poison;
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      for (std::size_t place = 0; place < 25; ++place) poison.insert({lane, place});
    }
    for (const auto& id : poison) world.fates[id] = {Fate::fails};
    world.job_time = 100ms;
    world.run_for(std::chrono::hours(12));
    CHECK(count_of(world, RunEventType::tripped) > 0);
    CHECK(world.acknowledged_in_all() == lanes * per_lane);
    CHECK(world.dead == poison);
    CHECK(world.problem() == "");
  }
}

TEST_CASE("a failure counts as soon as another message is consumed") {
  SchedulerWorld world(0, 3, options_with_breaker(), 1, false, 1, attempts);
  world.fates[{0, 0}] = {Fate::fails};
  for (int turn = 0; turn < 1'000 && world.runs({0, 0}) < 2; ++turn) {
    if (!world.turn()) world.now += 50ms;
  }
  REQUIRE(world.runs({0, 0}) == 2);
  CHECK(world.failures[{0, 0}] == 2);
}

TEST_CASE("messages that fail are parked although no other message comes") {
  for (const std::size_t messages : {1U, 5U}) {
    SchedulerWorld world(0, messages, options_with_breaker(), 1, false, 1, attempts);
    world.handler_works = false;
    world.run_for(1min);
    CHECK(world.dead.size() == messages);
    CHECK(counted(world) == static_cast<int>(messages) * attempts);
    CHECK(world.problem() == "");
  }
}

TEST_CASE("a message that fails is parked although another one is postponed again and again") {
  for (const std::size_t lanes : {0U, 2U}) {
    SchedulerWorld world(lanes, 2, options_with_breaker(), 1, false, 1, attempts);
    for (std::size_t lane = 0; lane < 2; ++lane) {
      for (std::size_t place = 0; place < 2; ++place) world.fates[{lane, place}] = {Fate::postponed};
    }
    world.fates[{0, 0}] = {Fate::fails};
    world.run_for(10min);
    CHECK(world.dead == std::set<SchedulerWorld::Id>{{0, 0}});
    CHECK(world.problem() == "");
  }
}

TEST_CASE("a message that fails is parked soon if the only other one is postponed for an hour") {
  SchedulerWorld world(0, 2, options_with_breaker(), 1, false, 1, attempts);
  world.postponed_for = 1h;
  world.fates[{0, 0}] = {Fate::fails};
  world.fates[{0, 1}] = {Fate::postponed};
  world.run_for(2min);
  CHECK(world.dead == std::set<SchedulerWorld::Id>{{0, 0}});
  CHECK(world.problem() == "");
}

TEST_CASE("a message that is set aside is given back with its lane") {
  SchedulerWorld world(2, per_lane, options_with_breaker(), 1, false, 1, attempts);
  world.handler_works = false;
  world.run_for(5s);
  world.revoke(0);
  world.run_for(1min);
  world.handler_works = true;
  world.run_for(10min);
  CHECK(world.dead.empty());
  CHECK(world.acknowledged_in_all() == 2 * per_lane);
  CHECK(world.problem() == "");
}

TEST_CASE("a breaker that is off counts each failure at once") {
  RunOptions options = options_with_breaker();
  options.breaker.failures = 0;
  SchedulerWorld world(0, per_lane, options, 3, false, 1, attempts);
  world.handler_works = false;
  world.run_for(10min);
  CHECK(world.dead.size() == per_lane);
  CHECK(world.events.end() == std::ranges::find(world.events, RunEventType::tripped));
}

TEST_CASE("a handler that rejects all messages does not trip the breaker") {
  SchedulerWorld world(0, per_lane, options_with_breaker(), 3, false, 1, attempts);
  for (std::size_t place = 0; place < per_lane; ++place) world.fates[{0, place}] = {Fate::rejected};
  world.run_for(1min);
  CHECK(world.dead.size() == per_lane);
  CHECK(count_of(world, RunEventType::tripped) == 0);
}

}  // namespace
}  // namespace txinbox::test
