#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

using Bounds = std::vector<std::chrono::nanoseconds>;

/// Counts durations in buckets. The bounds separate the buckets.
struct Histogram {
  std::vector<std::uint64_t> buckets = {};  ///< One bucket for each bound, and one for the durations above all bounds.
                                            ///< Empty before the first `add`.
  double seconds = 0;                       ///< The sum of the durations.

  void add(std::chrono::nanoseconds time, const Bounds& bounds) {
    if (buckets.empty()) buckets.resize(bounds.size() + 1);
    // A time that equals a bound belongs to the bucket of that bound.
    const auto at = std::ranges::lower_bound(bounds, time) - bounds.begin();
    ++buckets[static_cast<std::size_t>(at)];
    seconds += std::chrono::duration<double>(time).count();
  }
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
