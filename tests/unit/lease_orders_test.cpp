// All orders of events that can happen to deliveries under a lease in a store.

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/counts.hpp"
#include "support/lease_orders.hpp"

namespace txinbox::test {

using Ends = std::vector<std::string>;

TEST_CASE("a completion whose reply was lost is found on the next try") {
  LeaseWorld world(HandlerKind::stores);
  world.run({{3, LeaseTwist::lose_reply}});
  CHECK(world.problem() == "");
  CHECK(world.ends == Ends{"consumed", "already_consumed", "already_consumed"});
}

TEST_CASE("a handler that outlives its lease does not complete the message that another delivery has completed") {
  LeaseWorld world(HandlerKind::stores);
  world.run({{2, LeaseTwist::whole_lease}, {3, LeaseTwist::delivery}});
  CHECK(world.problem() == "");
  CHECK(world.ends == Ends{"consumed", "lease_lost", "already_consumed", "already_consumed"});
}

TEST_CASE("a lease that ends before its handler begins is renewed, and the message is consumed") {
  LeaseWorld world(HandlerKind::succeeds);
  world.run({{1, LeaseTwist::whole_lease}});
  CHECK(world.problem() == "");
  CHECK(world.ends == Ends{"consumed", "already_consumed", "already_consumed"});
}

TEST_CASE("a message is parked when it has failed max_attempts times, and not before") {
  LeaseWorld world(HandlerKind::fails);
  world.run({});
  CHECK(world.problem() == "");
  REQUIRE(world.ends.size() == 3);
  CHECK(world.ends[0].find("runtime_error") != std::string::npos);
  CHECK(world.ends[1] == "parked");
  CHECK(world.ends[2] == "parked");
}

TEST_CASE("deliveries under a lease keep their promises, whichever two things happen to them") {
  count(try_lease_orders(2), "orders of events");
}

TEST_CASE("deliveries under a lease keep their promises, whichever three things happen to them" *
          doctest::test_suite("timed")) {
  count(try_lease_orders(3), "orders of events");
}

}  // namespace txinbox::test
