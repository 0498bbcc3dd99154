#pragma once

#include <cstddef>
#include <utility>
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

/// Tries each way in which up to `count` things can happen at the points of a run. What happens can change the later
/// points. `run` runs a list of `Twist{point, thing}`, in the order of the points. It returns the things that can
/// happen at each of the run's points; none if nothing more must be tried after this list. Returns how many ways it has
/// tried.
template <class Twist, class Run>
int try_every_order_of_points(int count, const Run& run, std::vector<Twist> twists = {}, int first = 0) {
  const auto things_at = run(std::as_const(twists));
  int tried = 1;
  if (count == 0) return tried;
  for (int point = first; point < static_cast<int>(things_at.size()); ++point) {
    for (const auto thing : things_at[static_cast<std::size_t>(point)]) {
      twists.push_back({point, thing});
      tried += try_every_order_of_points<Twist>(count - 1, run, twists, point + 1);
      twists.pop_back();
    }
  }
  return tried;
}

}  // namespace txinbox::test
