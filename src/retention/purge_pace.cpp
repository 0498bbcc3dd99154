#include "retention/purge_pace.hpp"

#include <algorithm>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

constexpr std::size_t first_rows = 100;
constexpr std::size_t slow_rows = 50;   // no fewer because a batch took long: that may be the commit
constexpr std::size_t max_spread = 16;  // where few of the old rows may go

}  // namespace

PurgePace::PurgePace(const PurgeOptions& options)
    : most_(options.batch_size),
      long_(options.max_batch_time),
      duty_(options.duty),
      rows_(std::min(options.batch_size, first_rows)) {}

std::size_t PurgePace::window() const noexcept { return std::max(rows_, most_ / 4) * spread_; }

void PurgePace::took(std::chrono::nanoseconds time, std::size_t limit, std::size_t chosen) noexcept {
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

void PurgePace::was_in_the_way() noexcept {
  rows_ = std::max<std::size_t>(rows_ / 2, 1);
  spread_ = 1;
}

std::chrono::nanoseconds PurgePace::rest_after(std::chrono::nanoseconds time) const noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time * (1 / duty_ - 1));
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
