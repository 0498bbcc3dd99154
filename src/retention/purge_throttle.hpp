#pragma once

#include <chrono>
#include <cstddef>

#include <txinbox/retention.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Decides how many rows a purge removes at a time, and how long it pauses. After a slow batch or contention it does
/// less; otherwise it does more.
class PurgeThrottle {
 public:
  explicit PurgeThrottle(const PurgeOptions&);

  /// The most rows that the next batch may remove.
  std::size_t rows() const noexcept { return rows_; }

  /// How many rows the next batch reads to find them.
  std::size_t scan_window() const noexcept;

  /// Records a finished batch: its duration, its limit of rows, and how many rows matched.
  void on_batch(std::chrono::nanoseconds, std::size_t limit, std::size_t chosen) noexcept;

  /// Records that a batch met locks, or another transient error.
  void on_contention() noexcept;

  /// How long to pause after a batch of this duration.
  std::chrono::nanoseconds pause_after(std::chrono::nanoseconds) const noexcept;

 private:
  const std::size_t most_;
  const std::chrono::nanoseconds long_;
  const double duty_;
  std::size_t rows_;
  std::size_t spread_ = 1;  ///< The factor of `scan_window`.
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
