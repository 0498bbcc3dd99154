#include "consume/consumer_policy.hpp"

#include <utility>

#include <fmt/format.h>

#include "backend/failure.hpp"
#include "base/retry_schedule.hpp"
#include "message/key.hpp"
#include "telemetry/listeners.hpp"
#include "types/handler_error.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

ConsumerPolicy::ConsumerPolicy(std::string consumer_, ConsumerOptions options_)
    : consumer(std::move(consumer_)), options(std::move(options_)) {
  check_consumer(consumer);
  check(options.retry);
  if (options.max_attempts < 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("max_attempts is {}; it must be at least 0 (0 parks no message)", options.max_attempts));
  }
  check_max_result(options.max_result);
  if (options.claim_wait && options.claim_wait->count() < 0) {
    throw Error(ErrorCode::invalid_argument, fmt::format("claim_wait is {} ms; it must be at least 0 (0 does not wait)",
                                                         options.claim_wait->count()));
  }
  check(options.listeners);
}

void ConsumerPolicy::refuse_when_stopped() const {
  if (!options.stop.stop_requested()) return;
  throw Error(ErrorCode::stopped, "the consumer's stop token is set; no new message is begun");
}

bool ConsumerPolicy::is_declared_transient(const std::exception_ptr& error) const noexcept {
  try {
    return options.is_transient && options.is_transient(original_error(error));
  } catch (...) {
    return false;
  }
}

bool ConsumerPolicy::counts(const Failure& failure, Counting counting) const noexcept {
  if (counting == Counting::never) return false;
  if (counting == Counting::later && failure.action() == Action::redeliver) return false;
  return is_caused_by_message(failure) && !failure.is(ErrorCode::lease_lost) && !options.stop.stop_requested() &&
         !is_declared_transient(failure.error());
}

bool ConsumerPolicy::exceeds_max_attempts(int attempts) const noexcept {
  return options.max_attempts > 0 && attempts >= options.max_attempts;
}

void ConsumerPolicy::notify(Event event) const noexcept {
  // The attempt that failed has sent its event before.
  if (event.type == EventType::failed && is_proven_failure(event.error)) return;
  event.consumer = consumer;
  detail::notify(options.listeners, event);
}

bool is_caused_by_message(const Failure& failure) noexcept {
  return !failure.is_transient() && !failure.is_of_environment() && !failure.is(ErrorCode::stopped) &&
         !failure.is(ErrorCode::unknown_state) && !failure.is(ErrorCode::retry_later) &&
         failure.action() != Action::stop;
}

std::optional<Result> postponed_by(const std::exception_ptr& error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const RetryLater& later) {
    return Result{.outcome = Outcome::postponed, .error = error, .retry_after = later.delay()};
  } catch (...) {
    return std::nullopt;
  }
}

Result failed_with(std::exception_ptr error) noexcept {
  if (auto postponed = postponed_by(error)) return std::move(*postponed);
  return {.outcome = Outcome::failed, .error = std::move(error)};
}

Outcome outcome_for(Claim claim) noexcept {
  switch (claim) {
    case Claim::claimed:
      return Outcome::consumed;
    case Claim::already_consumed:
      return Outcome::already_consumed;
    case Claim::conflict:
      return Outcome::conflict;
    case Claim::in_progress:
      return Outcome::in_progress;
    case Claim::parked:
      return Outcome::parked;
    case Claim::discarded:
      return Outcome::discarded;
  }
  return Outcome::in_progress;
}

EventType event_for(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::consumed:
      return EventType::consumed;
    case Outcome::already_consumed:
      return EventType::already_consumed;
    case Outcome::in_progress:
      return EventType::in_progress;
    case Outcome::conflict:
      return EventType::conflict;
    case Outcome::parked:
      return EventType::parked;
    case Outcome::discarded:
      return EventType::discarded;
    case Outcome::postponed:
      return EventType::postponed;
    case Outcome::failed:
    case Outcome::not_run:
      return EventType::failed;
  }
  return EventType::failed;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
