#include "support/scheduler_orders.hpp"

#include <algorithm>
#include <random>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "support/every_order.hpp"

namespace txinbox::test {

using namespace std::chrono_literals;

std::string_view to_string(RunTwist twist) noexcept {
  constexpr std::array<std::string_view, all_run_twists.size()> names = {
      "first_fails", "second_fails", "postponed", "rejected", "poison", "database_down", "letters_refused",
      "first_lost",  "second_lost",  "revoked",   "endless",  "late",   "stop"};
  return names.at(static_cast<std::size_t>(twist));
}

namespace {

struct TwistAt {
  int turn;
  RunTwist what;
};

void happen(SchedulerWorld& world, RunTwist twist) {
  const auto first = world.held(0);
  const auto second = world.held(1);
  switch (twist) {
    case RunTwist::first_fails:
      if (first) world.fates[*first] = {Fate::fails, 2};
      break;
    case RunTwist::second_fails:
      if (second) world.fates[*second] = {Fate::fails, 2};
      break;
    case RunTwist::postponed:
      if (first) world.fates[*first] = {Fate::postponed, 1};
      break;
    case RunTwist::rejected:
      if (second) world.fates[*second] = {Fate::rejected};
      break;
    case RunTwist::poison:
      if (second) world.fates[*second] = {Fate::poison, 3};
      break;
    case RunTwist::database_down:
      world.database_is_down = true;
      break;
    case RunTwist::letters_refused:
      world.refuses_dead_letters = true;
      break;
    case RunTwist::first_lost:
      if (first) world.lose(*first);
      break;
    case RunTwist::second_lost:
      if (second) world.lose(*second);
      break;
    case RunTwist::revoked:
      if (world.has_lanes()) world.revoke(0);
      break;
    case RunTwist::endless:
      if (first) world.endless.insert(*first);
      break;
    case RunTwist::late:
      world.now += 1s;
      break;
    case RunTwist::stop:
      world.scheduler.end();
      break;
  }
}

/// Lets everything end, and returns what is wrong then.
std::string wrong_at_end(SchedulerWorld& world, std::size_t messages) {
  world.endless.clear();
  world.operator_retries = true;
  world.run_for(2h);
  if (!world.problem().empty()) return world.problem();
  if (world.running() > 0) return "a job has not ended";
  if (world.scheduler.has_ended()) return "";
  if (world.acknowledged_in_all() != messages) {
    return fmt::format("{} of {} messages are acknowledged", world.acknowledged_in_all(), messages);
  }
  return world.scheduler.is_empty() ? "" : "messages are held that the source does not hold";
}

std::string wrong_with(const LaneSetup& setup, const std::vector<TwistAt>& twists) {
  constexpr std::size_t per_lane = 6;
  RunOptions options = SchedulerWorld::options_of_test();
  options.order = setup.order;
  SchedulerWorld world(setup.lanes, per_lane, options, 3, setup.can_rewind);
  auto twist = twists.begin();
  for (int turn = 0; twist != twists.end(); ++turn) {
    for (; twist != twists.end() && twist->turn == turn; ++twist) happen(world, twist->what);
    if (!world.turn()) world.now += 50ms;
    world.database_is_down = false;
    world.refuses_dead_letters = false;
  }
  for (int turn = 0; turn < 40; ++turn) {
    if (!world.turn()) world.now += 50ms;
  }
  return wrong_at_end(world, std::max<std::size_t>(setup.lanes, 1) * per_lane);
}

}  // namespace

std::string wrong_in_random_schedule(const LaneSetup& setup, unsigned seed) {
  std::minstd_rand random(seed);
  const auto below = [&](unsigned bound) { return static_cast<std::size_t>(random() / 8 % bound); };
  constexpr std::size_t per_lane = 40;
  RunOptions options = SchedulerWorld::options_of_test();
  options.order = setup.order;
  options.workers = 1 + below(4);
  options.max_in_flight = 1 + below(20);
  options.max_waiting = below(40);
  options.breaker.failures = below(6);
  options.hold_parked = below(3) == 0;
  const auto parks_after = static_cast<int>(below(4));
  SchedulerWorld world(setup.lanes, per_lane, options, 1 + below(8), setup.can_rewind, seed, parks_after);
  for (int step = 0; step < 600 && world.problem().empty(); ++step) {
    switch (below(12)) {
      case 0:
      case 1:
        world.poll(1 + below(10));
        break;
      case 2:
        world.settle();
        break;
      case 3:
        world.publish_dead_letters();
        break;
      case 4:
      case 5:
        world.begin_job();
        break;
      case 6:
      case 7:
        world.end_job(below(2));
        break;
      case 8:
        world.now += std::chrono::milliseconds(below(300));
        break;
      case 9:
        world.database_is_down = below(4) == 0;
        world.refuses_dead_letters = below(2) == 0;
        world.handler_works = below(3) > 0;
        if (const auto message = world.held(below(100))) {
          below(2) == 0 ? world.retry(*message) : world.discard(*message);
        }
        break;
      case 10:
        if (const auto message = world.held(below(100))) {
          constexpr std::array fates = {Fate::fails, Fate::postponed, Fate::rejected, Fate::poison};
          world.fates[*message] = {fates.at(below(fates.size())), 1 + static_cast<int>(below(4))};
        }
        break;
      default:
        if (const auto message = world.held(below(100)); message && below(2) == 0) {
          world.lose(*message);
        } else if (setup.lanes > 0 && below(3) == 0) {
          world.revoke(below(static_cast<unsigned>(setup.lanes)));
        }
    }
  }
  world.database_is_down = false;
  world.refuses_dead_letters = false;
  world.handler_works = true;
  return wrong_at_end(world, std::max<std::size_t>(setup.lanes, 1) * per_lane);
}

int try_run_orders(const LaneSetup& setup, int count, int turns) {
  return try_every_order<TwistAt>(all_run_twists, count, turns, 0, [&](const std::vector<TwistAt>& twists) {
    const std::string wrong = wrong_with(setup, twists);
    if (wrong.empty()) return;
    std::string order;
    for (const TwistAt& twist : twists) order += fmt::format("{} at turn {}, ", to_string(twist.what), twist.turn);
    FAIL_CHECK("with ", setup.lanes, " lanes, order ", to_string(setup.order), ", ", order, wrong);
  });
}

}  // namespace txinbox::test
