// The decisions of `run`, without a broker, a database, a thread or a clock.

#include <chrono>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/scheduler_orders.hpp"
#include "support/scheduler_world.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

const std::vector<Ordering> all_orderings = {{3, Order::lane, false},
                                             {3, Order::lane, true},
                                             {3, Order::key, false},
                                             {3, Order::key, true},
                                             {0, Order::lane, false}};

TEST_CASE("run loses and reorders nothing and ends, whichever two things happen to it") {
  int tried = 0;
  for (const Ordering& ordering : all_orderings) tried += try_run_orders(ordering, 2, 6);
  MESSAGE("count: ", tried, " orders of events");
}

TEST_CASE("run loses and reorders nothing and ends, whichever three things happen to it" *
          doctest::test_suite("timed")) {
  int tried = 0;
  for (const Ordering& ordering : all_orderings) tried += try_run_orders(ordering, 3, 5);
  MESSAGE("count: ", tried, " orders of events");
}

TEST_CASE("run loses and reorders nothing in random schedules, and all messages are acknowledged in the end") {
  int tried = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    for (const Ordering& ordering : all_orderings) {
      const std::string wrong = wrong_in_random_schedule(ordering, seed);
      if (!wrong.empty()) FAIL_CHECK("with seed ", seed, ", ", ordering.lanes, " lanes, ", wrong);
      ++tried;
    }
  }
  MESSAGE("count: ", tried, " random schedules");
}

/// How many messages are acknowledged in two minutes, if the first `stuck` lanes of 8 have this fate from a place on.
struct Isolated {
  std::size_t stuck_lanes = 0;
  Fate fate = Fate::fails;
  std::size_t place = 0;
  bool is_endless = false;
  RunOptions options = SchedulerWorld::options_of_test();
  std::size_t job_size = 3;
  bool can_rewind = false;
};

constexpr std::size_t per_lane = 30;

void check_isolation(const Isolated& what) {
  CAPTURE(what.stuck_lanes);
  CAPTURE(what.place);
  CAPTURE(static_cast<int>(what.fate));
  CAPTURE(what.job_size);
  CAPTURE(what.can_rewind);
  SchedulerWorld world(8, per_lane, what.options, what.job_size, what.can_rewind);
  for (std::size_t lane = 0; lane < what.stuck_lanes; ++lane) {
    if (what.is_endless) {
      world.endless.insert({lane, what.place});
    } else {
      world.fates[{lane, what.place}] = {what.fate};
    }
  }
  world.run_for(2min);
  CHECK(world.problem() == "");
  for (std::size_t lane = 0; lane < 8; ++lane) {
    CHECK(world.acknowledged(lane) == (lane < what.stuck_lanes ? what.place : per_lane));
  }
}

TEST_CASE("lanes that wait keep no other lane waiting, however many they are and whatever they wait for") {
  for (const std::size_t stuck : {1UL, 3UL, 7UL}) {
    for (const Fate fate : {Fate::fails, Fate::postponed, Fate::poison}) {
      for (const std::size_t place : {0UL, 1UL, 5UL}) {
        for (const std::size_t job_size : {1UL, 3UL, 100UL}) {
          for (const bool can_rewind : {false, true}) {
            RunOptions options = SchedulerWorld::options_of_test();
            options.max_waiting = can_rewind ? 8 : 1'000;
            check_isolation({.stuck_lanes = stuck,
                             .fate = fate,
                             .place = place,
                             .options = options,
                             .job_size = job_size,
                             .can_rewind = can_rewind});
          }
        }
      }
    }
  }
}

TEST_CASE("a handler that does not end keeps no other worker from other lanes") {
  for (std::size_t slow = 0; slow < 4; ++slow) {
    for (const std::size_t place : {0UL, 1UL, 5UL}) {
      for (const bool can_rewind : {false, true}) {
        RunOptions options = SchedulerWorld::options_of_test();
        options.workers = 4;
        options.max_waiting = can_rewind ? 8 : 1'000;
        check_isolation({.stuck_lanes = slow,
                         .place = place,
                         .is_endless = true,
                         .options = options,
                         .job_size = 1,
                         .can_rewind = can_rewind});
      }
    }
  }
}

TEST_CASE("without lanes, messages that wait for another try leave room for others") {
  SchedulerWorld world(0, 200, SchedulerWorld::options_of_test(), 3);
  for (std::size_t place = 0; place < 8; ++place) world.fates[{0, place}] = {Fate::fails};
  world.run_for(10min);
  CHECK(world.problem() == "");
  CHECK(world.acknowledged_in_all() == 192);
}

TEST_CASE("what waits is bounded, and a lane that can be read again takes no more room than one message") {
  RunOptions options = SchedulerWorld::options_of_test();
  options.max_in_flight = 4;
  options.max_waiting = 8;
  SchedulerWorld world(8, 100, options, 3, true);
  for (std::size_t lane = 0; lane < 8; ++lane) world.fates[{lane, 0}] = {Fate::fails, 20};
  world.run_for(10min);
  CHECK(world.problem() == "");
  CHECK(world.most_held <= 12);
  CHECK(world.acknowledged_in_all() == 800);
}

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

TEST_CASE("if the database is away, no message is the reason") {
  SchedulerWorld world(4, 100, SchedulerWorld::options_of_test(), 10);
  for (int outage = 0; outage < 5; ++outage) {
    world.run_for(100ms);
    world.database_is_down = true;
    world.run_for(30s);
    world.database_is_down = false;
  }
  world.run_for(10min);
  CHECK(world.acknowledged_in_all() == 400);
  for (const auto& occurrence : world.scheduler.take_occurrences()) CHECK(occurrence.type != RunEventType::retry);
}

}  // namespace
}  // namespace txinbox::test
