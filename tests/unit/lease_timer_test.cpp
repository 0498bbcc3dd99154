#include "lease/lease_timer.hpp"

#include <chrono>
#include <deque>
#include <optional>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

namespace txinbox::detail {
namespace {

using namespace std::chrono_literals;
using Clock = LeaseTime::Clock;

/// Waits for at most a minute.
bool is_over(const LeaseTime& time) {
  const auto give_up = Clock::now() + 1min;
  while (!time.over.stop_requested() && Clock::now() < give_up) std::this_thread::sleep_for(1ms);
  return time.over.stop_requested();
}

TEST_CASE("each time is reported when it is over and not before, in any order of adding") {
  const auto timer = LeaseTimer::make();
  std::deque<LeaseTime> times;
  std::deque<LeaseTimer::Watch> watches;
  const auto begin = Clock::now();
  for (const auto length : {300ms, 100ms, 200ms, 50ms}) {
    watches.emplace_back(*timer, times.emplace_back(begin + length));
  }
  for (const LeaseTime& each : times) {
    CHECK(is_over(each));
    CHECK(Clock::now() >= each.ends.load());
  }
}

TEST_CASE("a short time is reported while the timer waits for a longer one, even if that one was removed") {
  const auto timer = LeaseTimer::make();
  LeaseTime ended(Clock::now() + 24h);
  LeaseTime longest(Clock::now() + 25h);
  { const LeaseTimer::Watch watch(*timer, ended); }
  const LeaseTimer::Watch watch(*timer, longest);
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(50ms);  // the thread waits by now
    LeaseTime time(Clock::now() + 10ms);
    const LeaseTimer::Watch watched(*timer, time);
    CHECK(is_over(time));
  }
  CHECK(!longest.over.stop_requested());
}

TEST_CASE("an extended time is reported at its new end" * doctest::test_suite("timed")) {
  const auto timer = LeaseTimer::make();
  LeaseTime time(Clock::now() + 200ms);
  const LeaseTimer::Watch watch(*timer, time);
  const auto later = Clock::now() + 600ms;
  time.ends = later;
  CHECK(is_over(time));
  CHECK(Clock::now() >= later);
}

TEST_CASE("a removed time is not reported, and a reported time may remove itself" * doctest::test_suite("timed")) {
  const auto timer = LeaseTimer::make();
  LeaseTime first(Clock::now() + 100ms);
  LeaseTime second(Clock::now() + 200ms);
  std::optional<LeaseTimer::Watch> watch(std::in_place, *timer, first);
  const LeaseTimer::Watch other(*timer, second);
  watch.reset();
  CHECK(is_over(second));
  CHECK(!first.over.stop_requested());

  std::optional<LeaseTime> third(std::in_place, Clock::now());
  std::optional<LeaseTimer::Watch> ended(std::in_place, *timer, *third);
  const std::stop_source over = third->over;
  while (!over.stop_requested()) std::this_thread::yield();
  ended.reset();
  third.reset();
}

TEST_CASE("a timer that was never used ends") { (void)LeaseTimer::make(); }

}  // namespace
}  // namespace txinbox::detail
