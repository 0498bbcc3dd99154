#include "support/relay_orders.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "support/every_order.hpp"

namespace txinbox::test {

std::string wrong_with(const std::vector<RelayTwist>& twists) {
  RelayWorld world;
  world.tells_writers = true;
  for (const char* key : {"a", "b", "a", "", "a"}) world.add(key);
  world.run(twists);
  return world.problem();
}

int try_orders(int count, int jobs) {
  return try_every_order<RelayTwist>(all_twists, count, jobs, 1, [](const std::vector<RelayTwist>& twists) {
    const std::string wrong = wrong_with(twists);
    if (wrong.empty()) return;
    std::string order;
    for (const RelayTwist& twist : twists) order += fmt::format("{} at job {}, ", to_string(twist.what), twist.job);
    FAIL_CHECK("with ", order, wrong);
  });
}

}  // namespace txinbox::test
