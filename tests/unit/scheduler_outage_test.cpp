// The decisions of `run` while the database is away, and when only one message meets such an error.

#include <chrono>
#include <map>
#include <string>

#include <doctest/doctest.h>

#include "run/scheduler.hpp"
#include "support/scheduler_world.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a message that meets an outage alone while others succeed waits alone") {
  SchedulerWorld world(4, 1'000, SchedulerWorld::options_of_test(), 100);
  world.fates[{0, 50}] = {Fate::poison};
  for (int i = 0; i < 100 && world.acknowledged_in_all() < 3'050; ++i) world.run_for(100ms);
  CHECK(world.problem() == "");
  CHECK(world.acknowledged(0) == 50);
  CHECK(world.acknowledged_in_all() == 3'050);
  int unavailable = 0;
  for (const auto& occurrence : world.scheduler.take_occurrences()) {
    unavailable += occurrence.type == RunEventType::unavailable ? 1 : 0;
  }
  CHECK(unavailable <= 2);
}

/// One job ends in this time.
void work_for_50ms(SchedulerWorld& world) {
  world.turn();
  world.now += 50ms;
}

TEST_CASE("a message that meets an outage alone while others succeed is parked after max_attempts such failures") {
  RunOptions options = SchedulerWorld::options_of_test();
  options.max_waiting = 1'000;
  SchedulerWorld world(4, 1'000, options, 100);
  world.max_attempts = 3;
  world.fates[{0, 50}] = {Fate::poison};
  world.fates[{2, 70}] = {Fate::poison};
  for (int i = 0; i < 1'000; ++i) work_for_50ms(world);
  CHECK(world.problem() == "");
  CHECK(world.acknowledged(0) == 1'000);
  CHECK(world.acknowledged(2) == 1'000);
  CHECK(world.scheduler.summary().dead_letters == 2);
  const std::map<SchedulerWorld::Id, int> three_each{{{0, 50}, 3}, {{2, 70}, 3}};
  CHECK(world.proven_failures == three_each);
}

TEST_CASE("a message whose proven failure cannot be counted yet still runs alone") {
  SchedulerWorld world(10, 1'000, SchedulerWorld::options_of_test(), 16);
  const SchedulerWorld::Id poison{0, 50};
  world.max_attempts = 3;
  world.fates[poison] = {Fate::poison};
  world.held_elsewhere.insert(poison);
  for (int i = 0; i < 500; ++i) work_for_50ms(world);
  CHECK(world.problem() == "");
  CHECK(world.proven_failures.empty());
  world.held_elsewhere.clear();
  for (int i = 0; i < 2'000; ++i) work_for_50ms(world);
  CHECK(world.problem() == "");
  CHECK(world.acknowledged(0) == 1'000);
  CHECK(world.proven_failures[poison] == 3);
}

TEST_CASE("an error while a proven failure is counted is no other failure of the message") {
  SchedulerWorld world(4, 1'000, SchedulerWorld::options_of_test(), 1);
  const SchedulerWorld::Id poison{0, 50};
  world.fates[poison] = {Fate::poison, 3};
  world.lost_counts[poison] = 5;
  for (int i = 0; i < 5'000 && world.acknowledged_in_all() < 4'000; ++i) work_for_50ms(world);
  CHECK(world.problem() == "");
  CHECK(world.acknowledged_in_all() == 4'000);
  CHECK(world.lost_counts[poison] == 0);
  CHECK(world.proven_failures[poison] >= 1);
  CHECK(world.proven_failures[poison] <= 2);  // nothing is proven about the first of the three
}

TEST_CASE("a failure that is not counted yet is not forgotten when its lane waits for an earlier message") {
  RunOptions options = SchedulerWorld::options_of_test();
  options.order = Ordering::key;
  options.max_in_flight = 140;
  SchedulerWorld world(3, 60, options, 1, true);
  const SchedulerWorld::Id first{1, 0}, poison{1, 5};
  world.fates[first] = {Fate::postponed};
  world.fates[poison] = {Fate::poison};
  world.held_elsewhere.insert(poison);
  world.poll(66);  // so no lane is paused before the failure is proven
  for (int i = 0; i < 200; ++i) {
    world.settle();
    while (world.begin_job()) continue;
    world.end_job();
    world.now += 50ms;
  }
  const int runs = world.runs(poison);
  CHECK(runs > 1);
  for (int i = 0; i < 200; ++i) work_for_50ms(world);
  CHECK(world.pauses > 0);
  CHECK(world.acknowledged(2) == 60);
  world.fates.erase(first);
  for (int i = 0; i < 200; ++i) work_for_50ms(world);
  CHECK(world.problem() == "");
  CHECK(world.acknowledged(1) == 5);
  CHECK(world.runs(poison) == runs);
}

TEST_CASE("an error as of an outage is proven only if another message is consumed after it") {
  SchedulerWorld world(2, 3, SchedulerWorld::options_of_test(), 1);
  world.max_attempts = 1;
  world.fates[{0, 0}] = {Fate::poison};
  world.run_for(1h);  // the other lane is consumed while the message waits, and then nothing more comes
  CHECK(world.problem() == "");
  CHECK(world.acknowledged(0) == 0);
  CHECK(world.acknowledged(1) == 3);
  CHECK(world.runs({0, 0}) > 10);
  CHECK(world.proven_failures.empty());
}

TEST_CASE("an error as of an outage is not proven if another job meets an outage before the next attempt") {
  SchedulerWorld world(3, 10'000, SchedulerWorld::options_of_test(), 1);
  const SchedulerWorld::Id poison{0, 0};
  world.fates[poison] = {Fate::poison};
  const auto run_until_poison = [&] {
    const int before = world.runs(poison);
    for (int i = 0; i < 1'000 && world.runs(poison) == before; ++i) work_for_50ms(world);
  };
  for (int i = 0; i < 5; ++i) run_until_poison();
  const int proven = world.proven_failures[poison];
  CHECK(proven > 0);
  for (int i = 0; i < 20; ++i) {
    world.database_is_down = true;
    for (int turn = 0; turn < 2; ++turn) work_for_50ms(world);
    world.database_is_down = false;
    run_until_poison();
  }
  CHECK(world.problem() == "");
  CHECK(world.runs(poison) == 25);
  CHECK(world.acknowledged_in_all() < 20'000);
  CHECK(world.proven_failures[poison] == proven);
}

TEST_CASE("if the database is away again and again, no message is the reason") {
  SchedulerWorld world(4, 100, SchedulerWorld::options_of_test(), 10);
  for (int outage = 0; outage < 5; ++outage) {
    for (int turn = 0; turn < 4; ++turn) world.turn();
    world.database_is_down = true;
    world.run_for(30s);
    CHECK(world.acknowledged_in_all() < 400);
    world.database_is_down = false;
  }
  world.run_for(10min);
  CHECK(world.acknowledged_in_all() == 400);
  CHECK(world.proven_failures.empty());
  for (const auto& occurrence : world.scheduler.take_occurrences()) CHECK(occurrence.type != RunEventType::retry);
}

TEST_CASE("a job that began before an outage does not show that a message of another job is the reason") {
  SchedulerWorld world(2, 1, SchedulerWorld::options_of_test(), 1);
  world.fates[{0, 0}] = {Fate::poison, 2};
  world.poll();
  REQUIRE(world.begin_job());
  REQUIRE(world.begin_job());
  REQUIRE(world.end_job(0));  // meets the outage
  REQUIRE(world.end_job(0));  // has begun before it, and succeeds
  world.run_for(10min);
  CHECK(world.acknowledged_in_all() == 2);
  for (const auto& occurrence : world.scheduler.take_occurrences()) CHECK(occurrence.type != RunEventType::retry);
}

TEST_CASE("no job begins while the database is away") {
  SchedulerWorld world(8, 1, SchedulerWorld::options_of_test(), 1);
  world.poll();
  REQUIRE(world.begin_job());
  world.database_is_down = true;
  REQUIRE(world.end_job());
  CHECK_FALSE(world.begin_job());
  world.now += 200ms;
  CHECK(world.begin_job());
}

}  // namespace
}  // namespace txinbox::test
