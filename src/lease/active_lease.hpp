#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include <txinbox/error.hpp>
#include <txinbox/lease_consumer.hpp>
#include <txinbox/version.hpp>

#include "lease/lease_call.hpp"
#include "lease/lease_clock.hpp"
#include "lease/lease_timer.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Returns `Error` lease_lost.
Error lease_lost();

/// Returns `Error` lease_lost for a lease that ends before its handler can start.
Error lease_is_too_short(std::chrono::milliseconds lease);

/// A granted lease, while its handler runs.
class ActiveLease {
 public:
  using Clock = LeaseTime::Clock;

  /// `call`, `message` and `clock` must outlive the lease. `stop` is the consumer's.
  ActiveLease(LeaseCall& call, const Grant&, const Message& message, const LeaseClock& clock,
              const std::stop_token& stop);

  std::int64_t fence() const noexcept { return fence_; }
  Clock::time_point expires_at() const noexcept { return time_.ends; }
  Clock::time_point now() const noexcept { return clock_.now(); }
  bool is_over() const noexcept { return now() >= expires_at(); }

  /// As `Lease::renew`.
  void renew();

  /// The lease that the handler gets.
  Lease& lease() noexcept { return lease_; }

  /// Starts to watch the time: when the lease expires, the handler's stop token is set.
  void start_timer(LeaseTimer& timer) { watch_.emplace(timer, time_); }

  /// Renews the lease on a thread of its own, until `stop_heartbeat` or the end of the lease.
  void start_heartbeat(std::chrono::milliseconds interval);

  /// Ends the heartbeat and waits for its thread. After that, only the caller renews the lease.
  void stop_heartbeat() noexcept { heartbeat_ = {}; }

 private:
  void renew(const std::stop_token& stop);
  void beat(const std::stop_token& ended, std::chrono::milliseconds interval);

  LeaseCall& call_;
  const LeaseClock& clock_;
  const std::int64_t fence_;
  LeaseTime time_;
  std::mutex renewing_;
  std::stop_source stop_;
  std::stop_callback<std::function<void()>> with_consumer_;
  std::stop_callback<std::function<void()>> with_time_;
  Lease lease_;
  std::optional<LeaseTimer::Watch> watch_;
  std::jthread heartbeat_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
