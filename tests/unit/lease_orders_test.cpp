// All orders of events that can happen to deliveries under a lease in a store.

#include <doctest/doctest.h>

#include "support/lease_world.hpp"

namespace txinbox::test {

TEST_CASE("deliveries under a lease keep their promises, whichever two things happen to them") {
  MESSAGE("count: ", try_lease_orders(2), " orders of events");
}

TEST_CASE("deliveries under a lease keep their promises, whichever three things happen to them" *
          doctest::test_suite("timed")) {
  MESSAGE("count: ", try_lease_orders(3), " orders of events");
}

}  // namespace txinbox::test
