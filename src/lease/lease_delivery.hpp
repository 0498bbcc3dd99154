#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <variant>

#include <txinbox/lease_consumer.hpp>
#include <txinbox/version.hpp>

#include "base/retry_schedule.hpp"
#include "consume/consumer_policy.hpp"
#include "lease/active_lease.hpp"
#include "lease/lease_call.hpp"
#include "lease/lease_timer.hpp"
#include "message/content_hash.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// One `LeaseConsumer::consume` call.
class LeaseDelivery {
 public:
  LeaseDelivery(const LeaseTerms& terms, LeaseProvider& store, LeaseTimer& timer, const Message& message,
                const LeaseHandler& handler, Counting counting)
      : terms_(terms),
        policy_(store.policy()),
        store_(store),
        timer_(timer),
        message_(message),
        handler_(handler),
        counting_(counting),
        hash_(message.content),
        call_time_(policy_.options.retry) {}

  Result consume();

 private:
  Result consume_in_scope();
  std::variant<Grant, Result> claim_or_wait();
  Result run(const Grant&);
  void begin_handler(ActiveLease&);
  void notify(Event) const noexcept;

  const LeaseTerms& terms_;
  const ConsumerPolicy& policy_;
  LeaseProvider& store_;
  LeaseTimer& timer_;
  const Message& message_;
  const LeaseHandler& handler_;
  const Counting counting_;
  const ContentHash hash_;
  RetrySchedule call_time_;  ///< Measures how long the call takes.
  const std::function<void(Event)> notify_ = [this](Event event) { notify(std::move(event)); };
  std::unique_ptr<LeaseCall> call_;
  bool handler_ran_ = false;
  bool parked_ = false;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
