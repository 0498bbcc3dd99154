#pragma once

#include <string>
#include <vector>

#include "support/lease_world.hpp"

namespace txinbox::test {

/// Tries each way in which up to `count` twists can happen at the points of the deliveries, with each handler. Each way
/// in which something goes wrong is a failed check that names the twists. Returns how many ways it has tried.
int try_lease_orders(int count);

/// Runs a world with these twists. Returns what went wrong. Empty if nothing did.
std::string wrong_with(HandlerKind, const std::vector<LeaseTwistAt>& twists);

}  // namespace txinbox::test
