#pragma once

#include <chrono>
#include <cstdint>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Behind which row a relay reads next. It only saves time: rows that were removed can stay in an index for long, and
/// reading from the beginning passes all of them.
///
/// While there is more to read, the position is the last row. After that it stays a second behind, because transactions
/// do not commit in the order of their rows. What commits even later is found from the beginning.
class ReadPosition {
 public:
  using Clock = std::chrono::steady_clock;

  explicit ReadPosition(std::chrono::milliseconds sweep) : sweep_(sweep) {}

  std::int64_t after() const noexcept { return after_; }

  void start_over(Clock::time_point now) noexcept {
    after_ = 0;
    next_sweep_ = now + sweep_;
  }

  bool sweep_is_due(Clock::time_point now) const noexcept { return now >= next_sweep_; }

  /// Rows up to `last` were read. `all`: there were no more.
  void advance(std::int64_t last, bool all, Clock::time_point now) noexcept {
    if (last > after_) after_ = last;
    if (after_ > highest_) highest_ = after_;
    if (!all) return;
    constexpr std::chrono::seconds behind(1);
    if (now >= noted_at_ + behind) {
      passed_ = noted_;
      noted_ = highest_;
      noted_at_ = now;
    }
    after_ = passed_;
  }

 private:
  const std::chrono::milliseconds sweep_;
  Clock::time_point next_sweep_{};
  std::int64_t after_ = 0;
  std::int64_t highest_ = 0;  ///< The last row that was ever read.
  std::int64_t passed_ = 0;   ///< All was read up to here at least a second ago.
  std::int64_t noted_ = 0;    ///< The next `passed_`.
  Clock::time_point noted_at_{};
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
