#pragma once

#include <chrono>
#include <cstddef>

#include <txinbox/retention.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// How much a purge takes at a time, and how long it rests: less when it was slow or in the way, more when
/// it was neither.
class PurgeThrottle {
 public:
  explicit PurgeThrottle(const PurgeOptions&);

  /// The most rows that the next batch may remove.
  std::size_t rows() const noexcept { return rows_; }

  /// How many rows it looks at for that.
  std::size_t scan_window() const noexcept;

  /// A batch of that many rows, at most, found `chosen` that may go.
  void on_batch(std::chrono::nanoseconds, std::size_t limit, std::size_t chosen) noexcept;

  /// A batch met locks, or another transient error.
  void on_contention() noexcept;

  /// For how long it rests after work of that length.
  std::chrono::nanoseconds pause_after(std::chrono::nanoseconds) const noexcept;

 private:
  const std::size_t most_;
  const std::chrono::nanoseconds long_;
  const double duty_;
  std::size_t rows_;
  std::size_t spread_ = 1;  ///< How many times as many rows it looks at.
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
