#pragma once

#include <string>
#include <vector>

#include "support/relay_world.hpp"

namespace txinbox::test {

/// Runs a relay with five rows, to which these twists happen. Returns what went wrong. Empty if nothing did.
std::string wrong_with(const std::vector<RelayTwist>& twists);

/// Tries each way in which `count` twists can happen at the first `jobs` jobs. Each way in which something goes wrong
/// is a failed check that names the twists. Returns how many ways it has tried.
int try_orders(int count, int jobs);

}  // namespace txinbox::test
