#pragma once

#include <functional>

#include <txinbox/listener.hpp>
#include <txinbox/version.hpp>

#include "backend/failure.hpp"
#include "base/retry_schedule.hpp"
#include "consume/consumer_policy.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Runs a step of a lease call. Runs it again after a transient error, as often as the retry policy allows, and while
/// `may_go_on(failure)` is true.
template <class Step, class MayGoOn>
auto run_with_retries(const ConsumerPolicy& policy, const std::function<void(Event)>& notify, const Step& step,
                      const MayGoOn& may_go_on) {
  RetrySchedule schedule(policy.options.retry);
  for (;;) {
    Failure failure;
    try {
      return step();
    } catch (...) {
      failure = Failure::current();
    }
    const auto backoff = schedule.next_backoff();
    if (!failure.is_transient() || !schedule.may_retry(backoff) || !may_go_on(failure)) failure.rethrow();
    notify({.type = EventType::retry, .attempt = schedule.attempt(), .error = failure.error(), .backoff = backoff});
    if (!schedule.wait(backoff, policy.options.stop)) failure.rethrow();
  }
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
