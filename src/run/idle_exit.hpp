#pragma once

#include <chrono>
#include <optional>

#include <txinbox/run.hpp>
#include <txinbox/source.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Decides when `run` ends because no more messages come (`RunOptions::idle_exit`). It has no thread and no clock.
///
/// - The idle time counts only while the source is connected and at its end. A source that does not know its end counts
///   as at its end.
/// - If the source gives no messages, and is not connected or not at its end, `run` ends after `idle_exit`, but not
///   before `least_wait`: a broker may be starting again, or a group may be distributing its lanes.
class IdleExit {
 public:
  using Time = std::chrono::steady_clock::time_point;

  static constexpr std::chrono::seconds least_wait{30};

  IdleExit(std::optional<std::chrono::milliseconds> idle_exit, Time now) : idle_exit_(idle_exit), last_busy_(now) {}

  bool is_set() const noexcept { return idle_exit_.has_value(); }

  /// A message came, or is held.
  void busy(Time now) noexcept;

  /// A poll with room has returned no message. Returns how `run` ends. Only such polls count as idle time, and not the
  /// clock: the thread of `run` may have waited for a CPU.
  std::optional<RunEnd> polled_nothing(const SourceStatus& status, Time now) noexcept;

  /// When `run` may be idle. None: never.
  std::optional<Time> due() const noexcept;

 private:
  const std::optional<std::chrono::milliseconds> idle_exit_;
  Time last_busy_;
  std::optional<Time> waits_since_;  ///< Since when the source has given nothing although it is not at its end.
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
