// `RunOptions::hold_parked`: a parked message keeps its place in its order until an operator has decided.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <set>

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

  ~HeldWorld() { CHECK(world.problem() == ""); }
  HeldWorld(const HeldWorld&) = delete;
  HeldWorld& operator=(const HeldWorld&) = delete;

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
  CHECK(world.problem() == "");
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

TEST_CASE("the failures of a message with an order count at once, whatever the breaker knows") {
  for (const Ordering order : {Ordering::lane, Ordering::key}) {
    for (const std::size_t lanes : {1U, 6U, 30U}) {
      CAPTURE(to_string(order));
      CAPTURE(lanes);
      RunOptions options = holding(order);
      options.max_in_flight = 200;  // if lanes wait, the broker is asked for no others before they take half of it
      options.breaker = {.failures = 20, .pause = 5s, .max_pause = 5min};
      SchedulerWorld world(lanes, per_lane, options, 3, false, 1, attempts);
      world.handler_works = false;
      world.run_for(10min);
      const std::size_t sequences = order == Ordering::lane ? lanes : 2 * lanes;
      CHECK(world.parked.size() >= std::min<std::size_t>(sequences, 12));
      CHECK(world.dead.empty());
      world.handler_works = true;
      for (int i = 0; i < 60; ++i) {
        for (const SchedulerWorld::Id& id : std::set(world.parked)) world.retry(id);
        world.run_for(1s);
      }
      CHECK(world.acknowledged_in_all() == lanes * per_lane);
      CHECK(world.problem() == "");
    }
  }
}

TEST_CASE("as many bad messages as the breaker needs are parked, and the others run when they are discarded") {
  RunOptions options = holding();
  options.max_in_flight = 50;
  options.breaker = {.failures = 3, .pause = 5s, .max_pause = 5min};
  SchedulerWorld world(3, per_lane, options, 3, false, 1, attempts);
  for (std::size_t lane = 0; lane < 3; ++lane) world.fates[{lane, 0}] = {Fate::fails};
  world.run_for(1min);
  CHECK(world.parked.size() == 3);
  for (std::size_t lane = 0; lane < 3; ++lane) world.discard({lane, 0});
  world.run_for(5s);
  CHECK(world.acknowledged_in_all() == 3 * per_lane);
  CHECK(world.problem() == "");
}

TEST_CASE("without an order, the breaker protects the messages also with hold_parked") {
  RunOptions options = holding();
  options.max_in_flight = 50;
  options.breaker = {.failures = 10, .pause = 5s, .max_pause = 5min};
  SchedulerWorld world(0, 40, options, 3, false, 1, attempts);
  world.handler_works = false;
  world.run_for(1h);
  CHECK(world.dead.empty());
  world.handler_works = true;
  world.run_for(10min);
  CHECK(world.acknowledged_in_all() == 40);
  CHECK(world.problem() == "");
}

TEST_CASE("a handler that refuses a message for good makes no dead letter, if this could not be stored") {
  SchedulerWorld world(1, per_lane, holding(), 3, false, 1, attempts);
  world.fates[{0, 3}] = {Fate::rejected, 5};
  world.run_for(1min);
  CHECK(world.runs({0, 3}) == 6);
  CHECK(world.dead.empty());
  CHECK(world.acknowledged(0) == per_lane);
  CHECK(world.problem() == "");
}

TEST_CASE("after the operator has let it run, a held message that fails again waits as after its first failure") {
  RunOptions options = holding();
  options.max_backoff = 1h;
  HeldWorld t(options);
  t.world.run_for(5h);
  const int runs = t.world.runs(HeldWorld::held);
  t.world.retry(HeldWorld::held);
  for (int i = 0; i < 72'000 && t.world.runs(HeldWorld::held) == runs; ++i) t.world.run_for(100ms);
  CHECK(t.world.runs(HeldWorld::held) > runs);
  t.world.run_for(2s);
  CHECK(t.world.runs(HeldWorld::held) == runs + attempts);
}

TEST_CASE("outages while a message is held are no failures of it, and it stays held") {
  HeldWorld t;
  for (int i = 0; i < 5; ++i) {
    t.world.database_is_down = true;
    t.world.run_for(10s);
    t.world.database_is_down = false;
    t.world.run_for(1min);
  }
  CHECK(t.events() == 1);
  CHECK(t.world.proven_failures.empty());
  t.world.fates.clear();
  t.world.retry(HeldWorld::held);
  t.world.run_for(10s);
  t.check_all_acknowledged();
}

TEST_CASE("without a backoff, a held message is looked at ten times a second at most") {
  RunOptions options = holding();
  options.backoff = options.max_backoff = 0ms;
  SchedulerWorld world(1, 1, options, 1, false, 1, attempts);
  world.parked.insert({0, 0});
  int looks = 0;
  const SchedulerWorld::Time end = world.now + 1s;
  while (world.now < end && looks < 100) {
    if (world.begin_job()) {
      ++looks;
      (void)world.end_job();
    } else if (!world.turn()) {
      world.now += 10ms;
    }
  }
  CHECK(looks <= 11);
  CHECK(looks >= 9);
}

}  // namespace
}  // namespace txinbox::test
