#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

#include <txinbox/lease.hpp>
#include <txinbox/version.hpp>

#include "consumer_context.hpp"
#include "lease_table.hpp"

namespace txinbox::inline TXINBOX_ABI::detail {

/// `Error` lease_lost.
Error lease_lost();

/// A lease that was granted, as long as its handler runs.
class HeldLease {
 public:
  using Clock = std::chrono::steady_clock;

  HeldLease(ConsumerContext& context, const LeaseHolder& holder, const Message& message,
            std::chrono::milliseconds length, std::int64_t fence, Clock::time_point expires_at);

  std::int64_t fence() const noexcept { return fence_; }
  Clock::time_point expires_at() const noexcept { return expires_at_; }

  /// As `Lease::renew`.
  void renew();

  /// What the handler is given.
  Lease& lease() noexcept { return lease_; }

  /// Renews by itself, on a thread of its own, until `stop_heartbeat`.
  void start_heartbeat(std::chrono::milliseconds interval);

  /// Returns when the thread has ended: nothing renews any more.
  void stop_heartbeat() noexcept { heartbeat_ = {}; }

 private:
  void beat(const std::stop_token& stop, std::chrono::milliseconds interval);

  ConsumerContext& context_;
  const LeaseHolder& holder_;
  const Message& message_;
  const std::chrono::milliseconds length_;
  const std::int64_t fence_;
  std::atomic<Clock::time_point> expires_at_;
  std::mutex renewing_;
  std::stop_source stop_;
  std::stop_callback<std::function<void()>> with_consumer_;
  Lease lease_;
  std::jthread heartbeat_;
};

}  // namespace txinbox::inline TXINBOX_ABI::detail
