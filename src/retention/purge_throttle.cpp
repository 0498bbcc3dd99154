#include "retention/purge_throttle.hpp"

#include <algorithm>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

constexpr std::size_t first_rows = 100;
constexpr std::size_t slow_rows = 50;   // the minimum after a slow batch: the commit may be the slow part
constexpr std::size_t max_spread = 16;  // the value if few of the old rows match

}  // namespace

PurgeThrottle::PurgeThrottle(const PurgeOptions& options)
    : most_(options.batch_size),
      long_(options.max_batch_time),
      duty_(options.duty),
      rows_(std::min(options.batch_size, first_rows)) {}

std::size_t PurgeThrottle::scan_window() const noexcept { return std::max(rows_, most_ / 4) * spread_; }

void PurgeThrottle::on_batch(std::chrono::nanoseconds time, std::size_t limit, std::size_t chosen) noexcept {
  if (time > long_) {
    if (rows_ > slow_rows) rows_ = std::max(rows_ / 2, slow_rows);
    spread_ = std::max<std::size_t>(spread_ / 2, 1);
    return;
  }
  if (time > long_ / 2) return;
  if (chosen >= limit) {
    rows_ = std::min(rows_ * 2, most_);
  } else {
    spread_ = std::min(spread_ * 2, max_spread);
  }
}

void PurgeThrottle::on_contention() noexcept {
  rows_ = std::max<std::size_t>(rows_ / 2, 1);
  spread_ = 1;
}

std::chrono::nanoseconds PurgeThrottle::pause_after(std::chrono::nanoseconds time) const noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time * (1 / duty_ - 1));
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
