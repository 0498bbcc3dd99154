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
/// row that was read at least a second ago, because transactions do not commit in the order of their rows. A sweep
/// finds the rows of transactions that commit even later: it lists the rows up to the position, in steps.
class ReadPosition {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit ReadPosition(std::chrono::milliseconds sweep) : sweep_(sweep) {}

  std::int64_t after() const noexcept { return after_; }

  /// The next read begins with the first row of the table.
  void start_over(Time now) noexcept {
    after_ = highest_ = passed_ = noted_ = swept_ = 0;
    next_sweep_ = now + sweep_;
  }

  /// The relay has read the rows up to `last`. `all`: there were no more rows.
  void advance(std::int64_t last, bool all, Time now) noexcept {
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

  bool sweep_is_due(Time now) const noexcept { return after_ > 0 && now >= next_sweep_; }

  /// The row after which the present sweep continues.
  std::int64_t swept() const noexcept { return swept_; }

  /// The sweep has listed the rows up to `last`. `all`: it has listed the rows up to the position.
  void advance_sweep(std::int64_t last, bool all, Time now) noexcept {
    swept_ = all ? 0 : last;
    if (all) next_sweep_ = now + sweep_;
  }

 private:
  const std::chrono::milliseconds sweep_;
  Time next_sweep_{};
  std::int64_t after_ = 0;
  std::int64_t highest_ = 0;  ///< The last row that was read so far.
  std::int64_t passed_ = 0;   ///< All rows up to this one were read at least a second ago.
  std::int64_t noted_ = 0;    ///< The next value of `passed_`.
  std::int64_t swept_ = 0;
  Time noted_at_{};
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
