#pragma once

#include <chrono>
#include <stop_token>

#include <txinbox/consumer_options.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Checks a policy.
///
/// Errors: `Error` invalid_argument, which names the field.
void check(const RetryPolicy&);

/// Counts the runs of one `consume` call, and waits between them.
class RetrySchedule {
 public:
  explicit RetrySchedule(const RetryPolicy& policy) : policy_(policy), bound_(policy.initial_backoff) {}

  /// The number of the current run, from 1.
  int attempt() const noexcept { return attempt_; }

  std::chrono::nanoseconds elapsed() const noexcept { return Clock::now() - start_; }

  /// Counts from 1 again, with the initial backoff, because there was progress. The elapsed time is not reset.
  void start_over() noexcept {
    attempt_ = 1;
    bound_ = policy_.initial_backoff;
  }

  const RetryPolicy& policy() const noexcept { return policy_; }

  /// Whether the policy allows another run after a wait of `backoff`.
  bool may_retry(std::chrono::milliseconds backoff = {}) const noexcept {
    return attempt_ < policy_.max_runs && has_time(backoff);
  }

  /// Whether the policy's `max_elapsed` leaves time for a wait of `backoff`.
  bool has_time(std::chrono::milliseconds backoff = {}) const noexcept {
    // In milliseconds, because a long `max_elapsed` does not fit into nanoseconds.
    return std::chrono::floor<std::chrono::milliseconds>(elapsed()) < policy_.max_elapsed - backoff;
  }

  /// Returns the next wait: random between zero and the bound. The bound then doubles, up to `max_backoff`.
  std::chrono::milliseconds next_backoff();

  /// Waits, then counts the next run. If a stop is requested, returns false and does not count.
  bool wait(std::chrono::milliseconds backoff, const std::stop_token& stop);

 private:
  using Clock = std::chrono::steady_clock;

  RetryPolicy policy_;
  std::chrono::milliseconds bound_;
  Clock::time_point start_ = Clock::now();
  int attempt_ = 1;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
