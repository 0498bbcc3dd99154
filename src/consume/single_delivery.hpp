#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "backend/failure.hpp"
#include "base/retry_schedule.hpp"
#include "consume/attempt_marker.hpp"
#include "consume/consumer_context.hpp"
#include "message/content_hash.hpp"
#include "transaction/claim_recovery.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// One `consume` call.
class SingleDelivery {
 public:
  SingleDelivery(ConsumerContext& context, const Message& message, const Handler& handler, Counting counting,
                 std::size_t index = 0)
      : context_(context),
        message_(message),
        handler_(handler),
        counting_(counting),
        index_(index),
        hash_(message.content),
        schedule_(context.options.retry),
        attempt_(context, message) {}

  /// An error of the handler can be a `HandlerError`.
  Result consume();

  /// Whether the handler ran in the last run. If so, the error may come from it.
  bool handler_ran() const noexcept { return handler_ran_; }

 private:
  Result consume_in_scope();
  Result consume_within_claim_wait();
  Result consume_with_retries();
  std::optional<Result> start_attempt();
  void remove_marker(SessionHandle&) noexcept;
  bool is_held(SessionHandle&);
  std::optional<Result> run();
  ErasedKeys::Reading read_erased();
  bool may_be_taken_over(const backend::ClaimedRow&) const;
  Result answer(backend::ClaimedRow&, SessionHandle&);
  bool may_be_left_by_another(const Failure&) noexcept;
  void record_torn();
  void notify(Event) const noexcept;
  void notify_if_torn() noexcept;
  Scope scope(ScopeKind kind) const noexcept { return context_.scope(kind, {&message_, 1}, schedule_.attempt()); }

  ConsumerContext& context_;
  const Message& message_;
  const Handler& handler_;
  const Counting counting_;
  const std::size_t index_;
  const ContentHash hash_;
  RetrySchedule schedule_;
  ClaimRecovery recovery_;
  AttemptMarker attempt_;
  std::optional<std::string> stored_;  ///< The result that the handler stored in the last run.
  bool refused_ = false;  ///< The handler has refused the message. The next run only claims the key and stores the
                          ///< result.
  bool torn_ = false;     ///< The handler has committed a claim of this call, and the claim was marked torn.
  bool torn_notified_ = false;
  bool handler_ran_ = false;
  bool ran_again_ = false;  ///< See `may_be_left_by_another`.
  bool parked_ = false;     ///< This delivery's failure parked the message.
  bool taken_over_ = false;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
