// How much a purge takes at a time, and how long it rests.

#include <chrono>

#include <doctest/doctest.h>

#include "retention/purge_pace.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;
using detail::PurgePace;

constexpr auto quick = 1ms;
constexpr auto fair = 40ms;  // more than half of what it may take
constexpr auto slow = 60ms;  // more than all of it

/// After batches that were quick and full.
PurgePace at_its_most(const PurgeOptions& options) {
  PurgePace pace(options);
  for (int i = 0; i < 20; ++i) pace.took(quick, pace.rows(), pace.rows());
  return pace;
}

TEST_CASE("a purge begins with few rows, and takes more while that is quick, up to its batch size") {
  PurgePace pace({.batch_size = 350});
  CHECK(pace.rows() == 100);
  pace.took(quick, 100, 100);
  CHECK(pace.rows() == 200);
  pace.took(fair, 200, 200);
  CHECK(pace.rows() == 200);
  pace.took(quick, 200, 200);
  CHECK(pace.rows() == 350);
  CHECK(PurgePace({.batch_size = 7}).rows() == 7);
}

TEST_CASE("a slow batch is followed by half as many rows, though not by fewer than 50") {
  PurgePace pace = at_its_most({});
  REQUIRE(pace.rows() == 1000);
  pace.took(slow, 1000, 1000);
  CHECK(pace.rows() == 500);
  for (int i = 0; i < 20; ++i) pace.took(slow, pace.rows(), pace.rows());
  CHECK(pace.rows() == 50);
  PurgePace small({.batch_size = 7});
  small.took(slow, 7, 7);
  CHECK(small.rows() == 7);
}

TEST_CASE("a batch that was in the way of others is followed by half as many rows, down to one") {
  PurgePace pace({});
  pace.was_in_the_way();
  CHECK(pace.rows() == 50);
  for (int i = 0; i < 20; ++i) pace.was_in_the_way();
  CHECK(pace.rows() == 1);
}

TEST_CASE("where few of the old rows may go, it looks at more of them, up to a limit, and again at fewer") {
  PurgePace pace = at_its_most({});
  CHECK(pace.window() == 1000);
  pace.took(quick, 1000, 3);
  CHECK(pace.rows() == 1000);
  CHECK(pace.window() == 2000);
  for (int i = 0; i < 20; ++i) pace.took(quick, 1000, 3);
  CHECK(pace.window() == 16'000);
  pace.took(slow, 1000, 3);
  CHECK(pace.window() == 500 * 8);
  pace.was_in_the_way();
  CHECK(pace.window() == 250);
}

TEST_CASE("it looks at no fewer rows than a quarter of its batch size, however few it takes") {
  PurgePace pace({});
  CHECK(pace.rows() == 100);
  CHECK(pace.window() == 250);
}

TEST_CASE("it rests for the share of the time in which it does not work") {
  CHECK(PurgePace({.duty = 0.25}).rest_after(10ms) == 30ms);
  CHECK(PurgePace({.duty = 0.5}).rest_after(10ms) == 10ms);
  CHECK(PurgePace({.duty = 1}).rest_after(10ms) == 0ms);
}

}  // namespace
}  // namespace txinbox::test
