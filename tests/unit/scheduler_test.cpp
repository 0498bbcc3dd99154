// The decisions of `run`, without a broker, a database, a thread or a clock.

#include <chrono>
#include <cstddef>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "run/scheduler.hpp"
#include "support/counts.hpp"
#include "support/scheduler_orders.hpp"
#include "support/scheduler_world.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("run loses and reorders nothing and ends, whichever two things happen to it") {
  int tried = 0;
  for (const LaneSetup& setup : all_lane_setups) tried += try_run_orders(setup, 2, 6);
  count(tried, "orders of events");
}

TEST_CASE("run loses and reorders nothing in random schedules, and all messages are acknowledged in the end") {
  int tried = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    for (const LaneSetup& setup : all_lane_setups) {
      const std::string wrong = wrong_in_random_schedule(setup, seed);
      if (!wrong.empty()) FAIL_CHECK("with seed ", seed, ", ", setup.lanes, " lanes, ", wrong);
      ++tried;
    }
  }
  count(tried, "random schedules");
}

/// How many messages are acknowledged in two minutes, if the first `stuck` lanes of 8 have this fate from a place on.
struct Isolated {
  std::size_t stuck_lanes = 0;
  Fate fate = Fate::fails;
  std::size_t place = 0;
  std::size_t next_place = 0;  ///< Another message of these lanes with this fate. 0: there is none.
  bool is_endless = false;
  RunOptions options = SchedulerWorld::options_of_test();
  std::size_t job_size = 3;
  bool can_rewind = false;
};

constexpr std::size_t per_lane = 30;

void check_isolation(const Isolated& what) {
  CAPTURE(what.stuck_lanes);
  CAPTURE(what.place);
  CAPTURE(what.next_place);
  CAPTURE(static_cast<int>(what.fate));
  CAPTURE(what.job_size);
  CAPTURE(what.can_rewind);
  SchedulerWorld world(8, per_lane, what.options, what.job_size, what.can_rewind);
  for (std::size_t lane = 0; lane < what.stuck_lanes; ++lane) {
    if (what.is_endless) {
      world.endless.insert({lane, what.place});
    } else {
      world.fates[{lane, what.place}] = {what.fate};
      if (what.next_place > 0) world.fates[{lane, what.next_place}] = {what.fate};
    }
  }
  world.run_for(2min);
  CHECK(world.problem() == "");
  for (std::size_t lane = 0; lane < 8; ++lane) {
    CHECK(world.acknowledged(lane) == (lane < what.stuck_lanes ? what.place : per_lane));
  }
}

void check_isolation_of_all(Ordering order) {
  for (const std::size_t stuck : {1UL, 3UL, 7UL}) {
    for (const Fate fate : {Fate::fails, Fate::postponed, Fate::poison}) {
      for (const std::size_t place : {0UL, 1UL, 5UL}) {
        for (const std::size_t job_size : {1UL, 3UL, 100UL}) {
          for (const bool can_rewind : {false, true}) {
            RunOptions options = SchedulerWorld::options_of_test();
            options.order = order;
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

TEST_CASE("lanes that wait keep no other lane waiting, however many they are and whatever they wait for") {
  check_isolation_of_all(Ordering::lane);
}

TEST_CASE(
    "if messages of the other keys of a lane are done behind one that waits, they take no room from other lanes") {
  check_isolation_of_all(Ordering::key);
}

TEST_CASE("if messages of several keys of a lane wait, what is between them takes no room from other lanes") {
  for (const std::size_t stuck : {1UL, 3UL, 7UL}) {
    for (const Fate fate : {Fate::fails, Fate::postponed, Fate::poison}) {
      for (const std::size_t next_place : {1UL, 5UL, 9UL}) {
        for (const std::size_t job_size : {1UL, 3UL, 100UL}) {
          RunOptions options = SchedulerWorld::options_of_test();
          options.order = Ordering::key;
          check_isolation({.stuck_lanes = stuck,
                           .fate = fate,
                           .next_place = next_place,
                           .options = options,
                           .job_size = job_size,
                           .can_rewind = true});
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

TEST_CASE("a message without a lane takes room again when it runs again") {
  RunOptions options = SchedulerWorld::options_of_test();
  options.max_in_flight = 2;
  SchedulerWorld world(0, 2, options, 1);
  for (const std::size_t place : {0UL, 1UL}) world.fates[{0, place}] = {Fate::fails, 1};
  for (int turn = 0; turn < 3; ++turn) world.turn();
  CHECK(world.scheduler.room() == 2);
  world.now += 1s;
  REQUIRE(world.begin_job());
  REQUIRE(world.begin_job());
  CHECK(world.scheduler.room() == 0);
}

TEST_CASE("a lane that the broker takes back and gives again does not wait for the failure of a lost message") {
  RunOptions options = SchedulerWorld::options_of_test();
  options.backoff = options.max_backoff = 1h;
  SchedulerWorld world(1, 5, options, 3);
  world.fates[{0, 0}] = {Fate::fails, 1};
  for (int turn = 0; turn < 3; ++turn) world.turn();
  CHECK(world.acknowledged(0) == 0);
  world.revoke(0);
  world.run_for(1s);
  CHECK(world.acknowledged(0) == 5);
}

TEST_CASE("after the end, a dead letter is published once, and not again if the broker has not confirmed it") {
  const RunOptions options = SchedulerWorld::options_of_test();
  detail::Scheduler scheduler(options, 1, 0, false, 1);
  detail::Scheduler::Time now{};
  const auto add = [&] { scheduler.add_dead_letter({}, "invalid_key", {}, now); };
  const auto publish = [&] {
    now += 1h;
    const auto due = scheduler.take_dead_letters(now);
    for (const auto& each : due) scheduler.dead_letter_failed(each, {}, now);
    return due.size();
  };
  add();
  CHECK(publish() == 1);
  CHECK(publish() == 1);
  add();
  scheduler.end();
  CHECK(publish() == 1);  // the second one: nobody has tried it
  CHECK(publish() == 0);
  CHECK_FALSE(scheduler.is_empty());
  CHECK(scheduler.summary().dead_letters == 0);
}

TEST_CASE("a message whose handler asks for the longest wait does not run again") {
  using detail::Scheduler;
  const RunOptions options = SchedulerWorld::options_of_test();
  Scheduler scheduler(options, 1, 0, false, 1);
  const Scheduler::Time now = Scheduler::Time::clock::now();
  scheduler.add({.lane = 0}, {.business_key = "a"}, now);
  const detail::Job job = std::get<detail::Job>(scheduler.next(now));
  detail::JobResult result;
  result.results.push_back({.outcome = Outcome::postponed, .retry_after = std::chrono::milliseconds::max()});
  scheduler.finished(job, std::move(result), now);
  CHECK(std::holds_alternative<Scheduler::Wait>(scheduler.next(now + 1h)));
}

TEST_CASE("while the consumer is paused, nothing begins, and no message is polled") {
  using detail::Scheduler;
  const RunOptions options = SchedulerWorld::options_of_test();
  Scheduler scheduler(options, 1, 0, false, 1);
  const Scheduler::Time now{};
  scheduler.add({.lane = 0}, {.business_key = "a"}, now);
  const detail::Job job = std::get<detail::Job>(scheduler.next(now));
  const std::size_t room = scheduler.room();
  CHECK(room > 0);
  scheduler.finished(job, {.is_paused = true}, now);
  CHECK(scheduler.is_paused());
  CHECK(scheduler.room() == 0);
  CHECK(std::holds_alternative<Scheduler::Wait>(scheduler.next(now + 1h)));
  scheduler.unpause();
  CHECK(scheduler.room() == room);
  CHECK(std::holds_alternative<detail::Job>(scheduler.next(now)));
  const auto occurrences = scheduler.take_occurrences();
  REQUIRE(occurrences.size() == 2);
  CHECK(occurrences[0].type == RunEventType::paused);
  CHECK(occurrences[1].type == RunEventType::unpaused);
  CHECK(scheduler.summary().retries == 0);
}

}  // namespace
}  // namespace txinbox::test
