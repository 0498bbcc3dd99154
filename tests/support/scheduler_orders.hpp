#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "support/scheduler_world.hpp"

namespace txinbox::test {

/// An event for the scheduler of `run`.
enum class RunTwist {
  first_fails,      ///< The first message that is held fails twice.
  second_fails,     ///< The second message that is held fails twice.
  postponed,        ///< The first message is postponed.
  rejected,         ///< The second message becomes a dead letter.
  poison,           ///< The second message fails three times as in an outage.
  database_down,    ///< The database is away until the next turn.
  letters_refused,  ///< No dead letter is confirmed until the next turn.
  first_lost,       ///< The source loses the first message that is held.
  second_lost,      ///< The source loses the second message that is held.
  revoked,          ///< The broker takes the first lane back.
  endless,          ///< The handler of the first message takes a second.
  late,             ///< A second passes.
  stop,             ///< Somebody stops `run`.
};

inline constexpr std::array all_run_twists = {
    RunTwist::first_fails, RunTwist::second_fails,  RunTwist::postponed,       RunTwist::rejected,
    RunTwist::poison,      RunTwist::database_down, RunTwist::letters_refused, RunTwist::first_lost,
    RunTwist::second_lost, RunTwist::revoked,       RunTwist::endless,         RunTwist::late,
    RunTwist::stop};

std::string_view to_string(RunTwist) noexcept;

/// How many lanes there are, and in which way messages are ordered.
struct LaneSetup {
  std::size_t lanes;
  Ordering order;
  bool can_rewind;
};

inline constexpr std::array all_lane_setups = {LaneSetup{3, Ordering::lane, false}, LaneSetup{3, Ordering::lane, true},
                                               LaneSetup{3, Ordering::key, false}, LaneSetup{3, Ordering::key, true},
                                               LaneSetup{0, Ordering::lane, false}};

/// Tries each way in which `count` twists can happen at the first `turns` turns of the loop. Each way in which
/// something goes wrong is a failed check that names the twists. Returns how many ways it has tried.
int try_run_orders(const LaneSetup& setup, int count, int turns);

/// Runs a schedule in which what happens, and when, is random. Returns what went wrong. Empty if nothing did.
std::string wrong_in_random_schedule(const LaneSetup& setup, unsigned seed);

}  // namespace txinbox::test
