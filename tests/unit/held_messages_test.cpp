// `RunOptions::hold_parked`: a parked message keeps its place in its order until an operator has decided.

#include <algorithm>
#include <chrono>
#include <cstddef>

#include <doctest/doctest.h>

#include "support/scheduler_world.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

constexpr int attempts = 3;
constexpr std::size_t per_lane = 12;

RunOptions holding(Ordering order = Ordering::lane) {
  RunOptions options = SchedulerWorld::options_of_test();
  options.order = order;
  options.hold_parked = true;
  return options;
}

/// A world whose message 0@3 always fails, a minute after its beginning.
struct HeldWorld {
  static constexpr SchedulerWorld::Id held{0, 3};

  SchedulerWorld world;

  explicit HeldWorld(const RunOptions& options = holding(), std::size_t lanes = 2, bool can_rewind = false)
      : world(lanes, per_lane, options, 3, can_rewind, 1, attempts) {
    world.fates[held] = {Fate::fails};
    world.run_for(1min);
  }

  std::ptrdiff_t events() const { return std::ranges::count(world.events, RunEventType::held); }

  void check_all_acknowledged(std::size_t lanes = 2) const {
    CHECK(world.acknowledged_in_all() == lanes * per_lane);
    CHECK(world.dead.empty());
    CHECK(world.problem() == "");
  }
};

TEST_CASE("a parked message is held, the later ones of its lane wait, and the other lanes go on") {
  for (const bool can_rewind : {false, true}) {
    CAPTURE(can_rewind);
    HeldWorld t(holding(), 2, can_rewind);
    CHECK(t.world.parked.contains(HeldWorld::held));
    CHECK(t.world.acknowledged(0) == 3);
    CHECK(t.world.acknowledged(1) == per_lane);
    CHECK(t.world.runs({0, 4}) == 0);
    CHECK(t.events() == 1);
    SUBCASE("retry") {
      t.world.fates.clear();
      t.world.retry(HeldWorld::held);
    }
    SUBCASE("discard") { t.world.discard(HeldWorld::held); }
    t.world.run_for(5s);
    t.check_all_acknowledged();
    CHECK(t.events() == 1);
  }
}

TEST_CASE("with order by key, only the later messages with the same key wait") {
  RunOptions options = holding(Ordering::key);
  options.max_in_flight = 50;
  HeldWorld t(options, 1);
  for (std::size_t place = 4; place < per_lane; ++place) CHECK(t.world.runs({0, place}) == (place % 2 == 0 ? 1 : 0));
  CHECK(t.world.acknowledged(0) == 3);
  t.world.discard(HeldWorld::held);
  t.world.run_for(5s);
  t.check_all_acknowledged(1);
}

TEST_CASE("a message that is parked again is held again, and the event says so") {
  HeldWorld t;
  const int runs = t.world.runs(HeldWorld::held);
  t.world.retry(HeldWorld::held);
  t.world.run_for(1min);
  CHECK(t.world.runs(HeldWorld::held) == runs + attempts);
  CHECK(t.world.parked.contains(HeldWorld::held));
  CHECK(t.world.acknowledged(0) == 3);
  CHECK(t.events() == 2);
}

TEST_CASE("a message that was parked before it came is held, and its event has no error") {
  SchedulerWorld world(1, per_lane, holding(), 3, false, 1, attempts);
  world.parked.insert({0, 0});
  world.run_for(1min);
  CHECK(world.acknowledged(0) == 0);
  CHECK(world.runs({0, 1}) == 0);
  CHECK(std::ranges::count(world.events, RunEventType::held) == 1);
  CHECK(std::ranges::count(world.events, RunEventType::retry) == 0);
  CHECK(world.scheduler.summary().retries == 0);
  world.retry({0, 0});
  world.run_for(5s);
  CHECK(world.acknowledged(0) == per_lane);
}

TEST_CASE("the broker takes back the lane of a held message and gives it again, and the message is held again") {
  HeldWorld t;
  t.world.revoke(0);
  t.world.run_for(1min);
  CHECK(t.world.acknowledged(0) == 3);
  CHECK(t.world.runs({0, 4}) == 0);
  t.world.discard(HeldWorld::held);
  t.world.run_for(5s);
  t.check_all_acknowledged();
}

TEST_CASE("a message without an order is not held: it becomes a dead letter") {
  HeldWorld t(holding(), 0);
  CHECK(t.world.dead.contains(HeldWorld::held));
  CHECK(t.world.acknowledged_in_all() == per_lane);
  CHECK(t.events() == 0);
}

// Without `hold_parked`, the next message of the lane would show whether the handler works.
TEST_CASE("no message passes one whose failures are undecided") {
  for (const std::size_t lanes : {1U, 4U}) {
    CAPTURE(lanes);
    RunOptions options = holding();
    options.max_in_flight = 50;
    options.breaker = {.failures = 20, .pause = 5s, .max_pause = 5min};
    HeldWorld t(options, lanes);
    t.world.run_for(10min);
    CHECK(t.world.parked.contains(HeldWorld::held));
    CHECK(t.world.runs({0, 4}) == 0);
    CHECK(t.world.acknowledged_in_all() == 3 + (lanes - 1) * per_lane);
    t.world.fates.clear();
    t.world.retry(HeldWorld::held);
    t.world.run_for(5s);
    t.check_all_acknowledged(lanes);
  }
}

TEST_CASE("a held message does not count as one that could show whether the handler works") {
  RunOptions options = holding();
  options.max_in_flight = 50;
  options.breaker = {.failures = 20, .pause = 5s, .max_pause = 5min};
  HeldWorld t(options, 2);
  REQUIRE(t.world.parked.contains(HeldWorld::held));
  SchedulerWorld world(2, per_lane, options, 3, false, 1, attempts);
  world.parked.insert({0, 0});
  world.fates[{1, 0}] = {Fate::fails};
  world.run_for(20s);
  CHECK(world.parked.contains({1, 0}));
  CHECK(world.runs({1, 0}) == attempts);
}

TEST_CASE("a lane whose first message is set aside is open again after the broker has taken it back") {
  RunOptions options = holding();
  options.max_in_flight = 50;
  options.breaker = {.failures = 20, .pause = 5s, .max_pause = 5min};
  SchedulerWorld world(2, per_lane, options, 1, false, 1, attempts);
  world.endless.insert({1, 0});  // so long as it runs, nobody knows whether the handler works
  world.fates[{0, 0}] = {Fate::fails, attempts};
  world.run_for(30s);
  CHECK(world.runs({0, 0}) == attempts);
  CHECK(world.runs({0, 1}) == 0);
  world.revoke(0);
  world.run_for(30s);
  CHECK(world.acknowledged(0) == per_lane);
  CHECK(world.problem() == "");
}

}  // namespace
}  // namespace txinbox::test
