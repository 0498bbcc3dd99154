#include "support/relay_orders.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace txinbox::test {

std::string wrong_with(const std::vector<RelayTwist>& twists) {
  RelayWorld world;
  world.tells_writers = true;
  for (const char* key : {"a", "b", "a", "", "a"}) world.add(key);
  world.run(twists);
  return world.problem();
}

namespace {

int try_more(std::vector<RelayTwist>& twists, int count, int first, int jobs) {
  if (count == 0) {
    const std::string wrong = wrong_with(twists);
    if (wrong.empty()) return 1;
    std::string order;
    for (const RelayTwist& twist : twists) order += fmt::format("{} at job {}, ", to_string(twist.what), twist.job);
    FAIL_CHECK("with ", order, wrong);
    return 1;
  }
  int tried = 0;
  for (int at = first; at < jobs; ++at) {
    for (const Twist what : all_twists) {
      twists.push_back({at, what});
      tried += try_more(twists, count - 1, at + 1, jobs);
      twists.pop_back();
    }
  }
  return tried;
}

}  // namespace

int try_orders(int count, int jobs) {
  std::vector<RelayTwist> twists;
  return try_more(twists, count, 0, jobs);
}

}  // namespace txinbox::test
