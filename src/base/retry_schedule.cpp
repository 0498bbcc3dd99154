#include "base/retry_schedule.hpp"

#include <algorithm>
#include <random>

#include <txinbox/error.hpp>

#include "base/interruptible_sleep.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

void check(const RetryPolicy& policy) {
  using std::chrono::milliseconds;
  if (policy.max_runs < 1) {
    throw Error(ErrorCode::invalid_argument, "RetryPolicy::max_runs must be at least 1 (1 never retries)");
  }
  if (policy.initial_backoff < milliseconds::zero() || policy.max_backoff < policy.initial_backoff) {
    throw Error(ErrorCode::invalid_argument,
                "RetryPolicy::initial_backoff must be at least zero and at most max_backoff");
  }
  if (policy.max_elapsed < milliseconds::zero()) {
    throw Error(ErrorCode::invalid_argument, "RetryPolicy::max_elapsed must be at least zero");
  }
}

std::chrono::milliseconds RetrySchedule::next_backoff() {
  thread_local std::minstd_rand random{std::random_device{}()};
  std::uniform_int_distribution<std::chrono::milliseconds::rep> up_to_bound(0, bound_.count());
  // Compare without doubling, so that a bound near the type's limit does not overflow.
  bound_ = bound_ > policy_.max_backoff - bound_ ? policy_.max_backoff : bound_ * 2;
  return std::chrono::milliseconds(up_to_bound(random));
}

bool RetrySchedule::wait(std::chrono::milliseconds backoff, const std::stop_token& stop) {
  if (!sleep_for(backoff, stop)) return false;
  ++attempt_;
  return true;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
