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

/// How many times lay between which bounds.
struct Histogram {
  std::vector<std::uint64_t> buckets = {};  ///< One for each bound and one above them; empty before the first.
  double seconds = 0;                       ///< Their sum.

  void add(std::chrono::nanoseconds time, const Bounds& bounds) {
    if (buckets.empty()) buckets.resize(bounds.size() + 1);
    // A bound belongs to its bucket.
    const auto at = std::ranges::lower_bound(bounds, time) - bounds.begin();
    ++buckets[static_cast<std::size_t>(at)];
    seconds += std::chrono::duration<double>(time).count();
  }
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
