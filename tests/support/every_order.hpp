#pragma once

#include <vector>

namespace txinbox::test {

/// Tries each way in which `count` things of `all` can happen at the moments from 0 to `moments` - 1: calls `try_one`
/// with a list of `Twist{moment, thing}` in the order of the moments. Two of them are at least `distance` moments
/// apart. Returns how many ways it has tried.
template <class Twist, class Things, class TryOne>
int try_every_order(const Things& all, int count, int moments, int distance, const TryOne& try_one,
                    std::vector<Twist> twists = {}, int first = 0) {
  if (count == 0) {
    try_one(twists);
    return 1;
  }
  int tried = 0;
  for (int moment = first; moment < moments; ++moment) {
    for (const auto thing : all) {
      twists.push_back({moment, thing});
      tried += try_every_order<Twist>(all, count - 1, moments, distance, try_one, twists, moment + distance);
      twists.pop_back();
    }
  }
  return tried;
}

}  // namespace txinbox::test
