// All orders of three events, which take longer than the cases of scheduler_test.cpp.

#include <doctest/doctest.h>

#include "support/counts.hpp"
#include "support/scheduler_orders.hpp"

namespace txinbox::test {

TEST_CASE("run loses and reorders nothing and ends, whichever three things happen to it" *
          doctest::test_suite("timed")) {
  int tried = 0;
  for (const LaneSetup& setup : all_lane_setups) tried += try_run_orders(setup, 3, 5);
  count(tried, "orders of events");
}

}  // namespace txinbox::test
