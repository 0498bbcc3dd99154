#pragma once

#include <chrono>
#include <cstdint>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The row after which a relay reads next. It only saves time: an index can contain removed rows for a long time, and a
/// read from the beginning passes all of them.
///
/// While there are more rows to read, the position is the last row that was read. Otherwise the position is the last
/// row that was read at least a second ago, because transactions do not commit in the order of their rows. A read from
/// the beginning finds the rows of transactions that commit even later.
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

  /// The relay has read the rows up to `last`. `all`: there were no more rows.
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
  std::int64_t highest_ = 0;  ///< The last row that was read so far.
  std::int64_t passed_ = 0;   ///< All rows up to this one were read at least a second ago.
  std::int64_t noted_ = 0;    ///< The next value of `passed_`.
  Clock::time_point noted_at_{};
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
