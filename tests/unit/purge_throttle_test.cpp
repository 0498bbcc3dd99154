// How many rows a purge removes at a time, and how long it pauses.

#include <chrono>

#include <doctest/doctest.h>

#include "retention/purge_throttle.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;
using detail::PurgeThrottle;

constexpr auto quick = 1ms;
constexpr auto fair = 40ms;  // more than half of the allowed time
constexpr auto slow = 60ms;  // more than all of the allowed time

/// The throttle after batches that were quick and full.
PurgeThrottle at_its_most(const PurgeOptions& options) {
  PurgeThrottle throttle(options);
  for (int i = 0; i < 20; ++i) throttle.on_batch(quick, throttle.rows(), throttle.rows());
  return throttle;
}

TEST_CASE("a purge begins with few rows, and takes more while that is quick, up to its batch size") {
  PurgeThrottle throttle({.batch_size = 350});
  CHECK(throttle.rows() == 100);
  throttle.on_batch(quick, 100, 100);
  CHECK(throttle.rows() == 200);
  throttle.on_batch(fair, 200, 200);
  CHECK(throttle.rows() == 200);
  throttle.on_batch(quick, 200, 200);
  CHECK(throttle.rows() == 350);
  CHECK(PurgeThrottle({.batch_size = 7}).rows() == 7);
}

TEST_CASE("a slow batch is followed by half as many rows, though not by fewer than 50") {
  PurgeThrottle throttle = at_its_most({});
  REQUIRE(throttle.rows() == 1000);
  throttle.on_batch(slow, 1000, 1000);
  CHECK(throttle.rows() == 500);
  for (int i = 0; i < 20; ++i) throttle.on_batch(slow, throttle.rows(), throttle.rows());
  CHECK(throttle.rows() == 50);
  PurgeThrottle small({.batch_size = 7});
  small.on_batch(slow, 7, 7);
  CHECK(small.rows() == 7);
}

TEST_CASE("a batch that blocked others is followed by half as many rows, down to one") {
  PurgeThrottle throttle({});
  throttle.on_contention();
  CHECK(throttle.rows() == 50);
  for (int i = 0; i < 20; ++i) throttle.on_contention();
  CHECK(throttle.rows() == 1);
}

TEST_CASE("the scan window grows up to a limit when few of its rows can be removed, and shrinks again") {
  PurgeThrottle throttle = at_its_most({});
  CHECK(throttle.scan_window() == 1000);
  throttle.on_batch(quick, 1000, 3);
  CHECK(throttle.rows() == 1000);
  CHECK(throttle.scan_window() == 2000);
  for (int i = 0; i < 20; ++i) throttle.on_batch(quick, 1000, 3);
  CHECK(throttle.scan_window() == 16'000);
  throttle.on_batch(slow, 1000, 3);
  CHECK(throttle.scan_window() == 500 * 8);
  throttle.on_contention();
  CHECK(throttle.scan_window() == 250);
}

TEST_CASE("the scan window is at least a quarter of the batch size") {
  PurgeThrottle throttle({});
  CHECK(throttle.rows() == 100);
  CHECK(throttle.scan_window() == 250);
}

TEST_CASE("the throttle pauses for the share of time in which it does not purge") {
  CHECK(PurgeThrottle({.duty = 0.25}).pause_after(10ms) == 30ms);
  CHECK(PurgeThrottle({.duty = 0.5}).pause_after(10ms) == 10ms);
  CHECK(PurgeThrottle({.duty = 1}).pause_after(10ms) == 0ms);
}

}  // namespace
}  // namespace txinbox::test
