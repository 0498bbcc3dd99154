#include "lease/lease_delivery.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <txinbox/error.hpp>

#include "backend/failure.hpp"
#include "base/interruptible_sleep.hpp"
#include "base/reentrancy_check.hpp"
#include "message/key.hpp"
#include "pool/connection_locals.hpp"
#include "telemetry/listeners.hpp"
#include "telemetry/running_handler.hpp"
#include "types/handler_error.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

using std::chrono::milliseconds;

Result LeaseDelivery::consume() {
  return run_in_scope(policy_.options.listeners, policy_.scope(ScopeKind::consume, {&message_, 1}),
                      [&] { return consume_in_scope(); });
}

Result LeaseDelivery::consume_in_scope() {
  try {
    check_message(message_);
    ReentrancyCheck::refuse_nested(store_.identity());
    policy_.refuse_when_stopped();
    call_ = store_.begin(message_, hash_, notify_);
    auto answer = claim_or_wait();
    if (const auto* grant = std::get_if<Grant>(&answer)) {
      if (grant->taken_over) notify({.type = EventType::lease_taken_over});
      answer = run_in_scope(policy_.options.listeners, policy_.scope(ScopeKind::attempt, {&message_, 1}),
                            [&] { return run(*grant); });
    }
    auto& result = std::get<Result>(answer);
    notify({.type = event_for(result.outcome), .age = result.age});
    store_.count_duplicate(result);
    return std::move(result);
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    if (auto postponed = handler_ran_ ? postponed_by(error) : std::nullopt) {
      notify({.type = EventType::postponed, .error = error});
      return std::move(*postponed);
    }
    notify({.type = parked_ ? EventType::parked : EventType::failed, .error = error});
    if (!parked_) throw;
    return {.outcome = Outcome::parked, .error = original_error(error)};
  }
}

/// Claims the key. While another worker holds the lease, tries again for up to `claim_wait`.
std::variant<Grant, Result> LeaseDelivery::claim_or_wait() {
  constexpr milliseconds longest_pause{500};
  milliseconds pause{10};
  for (;;) {
    auto answer = call_->claim();
    const auto* result = std::get_if<Result>(&answer);
    if (result == nullptr || result->outcome != Outcome::in_progress) return answer;
    const auto left =
        policy_.options.claim_wait.value_or(milliseconds(0)) - std::chrono::floor<milliseconds>(call_time_.elapsed());
    if (left <= milliseconds::zero()) return answer;
    const auto wait = std::min({pause, left, std::max(result->retry_after, milliseconds(1))});
    if (!sleep_for(wait, policy_.options.stop)) return answer;
    pause = std::min(pause * 2, longest_pause);
  }
}

Result LeaseDelivery::run(const Grant& grant) {
  ActiveLease lease(*call_, grant, message_, timer_.clock(), policy_.options.stop);
  DeliveryAccess::set_max_result(lease.lease().delivery(), policy_.options.max_result);
  DeliveryAccess::forbid_refusal(lease.lease().delivery());
  try {
    if (policy_.options.count_starts && !call_->start_attempt(lease)) return {.outcome = Outcome::parked};
    begin_handler(lease);
    handler_ran_ = true;
    const RunningHandler running(policy_.options, &message_);
    run_in_scope(policy_.options.listeners, policy_.scope(ScopeKind::handler, {&message_, 1}),
                 [&] { handler_(lease.lease()); });
    lease.stop_heartbeat();
  } catch (...) {
    lease.stop_heartbeat();
    parked_ = call_->give_back(lease.fence(), Failure::current(), handler_ran_ ? counting_ : Counting::never);
    throw;
  }
  const auto& stored = lease.lease().delivery().stored();
  if (!call_->complete(lease.fence(), stored)) throw lease_lost();
  return {.outcome = Outcome::consumed, .stored = stored};
}

/// Starts the timer and the heartbeat. If the lease has expired by now, renews it first.
void LeaseDelivery::begin_handler(ActiveLease& lease) {
  if (lease.is_over()) lease.renew();
  if (lease.is_over()) throw lease_is_too_short(terms_.length);
  lease.start_timer(timer_);
  if (terms_.heartbeat > milliseconds::zero()) lease.start_heartbeat(terms_.heartbeat);
}

void LeaseDelivery::notify(Event event) const noexcept {
  event.business_key = message_.business_key;
  event.message_id = message_.message_id;
  event.duration = call_time_.elapsed();
  policy_.notify(event);
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
