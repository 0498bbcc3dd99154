// All orders of three events, which take longer than the cases of relay_machine_test.cpp.

#include <doctest/doctest.h>

#include "support/counts.hpp"
#include "support/relay_orders.hpp"

namespace txinbox::test {

TEST_CASE("a relay loses, doubles and reorders nothing, whichever three things happen to it" *
          doctest::test_suite("timed")) {
  count(try_orders(3, 13), "orders of events");
}

}  // namespace txinbox::test
