#pragma once

#include <chrono>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The clock of this process by which the end of a lease is known. A unit test has a clock of its own.
///
/// @threads any number may call `now`.
class LeaseClock {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~LeaseClock() = default;
  LeaseClock(const LeaseClock&) = delete;
  LeaseClock& operator=(const LeaseClock&) = delete;

  virtual Clock::time_point now() const noexcept = 0;

  /// The steady clock.
  static const LeaseClock& steady() noexcept;

 protected:
  LeaseClock() = default;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
