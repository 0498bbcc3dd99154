#include "consume/consumer_context.hpp"

#include <algorithm>
#include <utility>

#include <txinbox/error.hpp>

#include "backend/error_classification.hpp"
#include "message/key.hpp"
#include "pool/with_session.hpp"
#include "telemetry/notify.hpp"
#include "transaction/claim.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

ConsumerContext::ConsumerContext(SessionProvider source_, std::string consumer_, TxConsumerOptions options_)
    : source(std::move(source_)),
      consumer(std::move(consumer_)),
      options(std::move(options_)),
      recent(options.recent_keys),
      duplicates(source, consumer) {
  check_consumer(consumer);
  check(options.retry);
  if (options.max_attempts < 0) {
    throw Error(ErrorCode::invalid_argument, "max_attempts must be at least 0 (0 never parks a message)");
  }
  if (options.count_starts && !source.reconnects()) {
    throw Error(ErrorCode::invalid_argument,
                "TxConsumerOptions::count_starts needs a pool: what it writes is committed beside the transaction");
  }
  if (recent.enabled() && !source.reconnects()) {
    throw Error(ErrorCode::invalid_argument,
                "TxConsumerOptions::recent_keys needs a pool: on a session of the caller's nobody tells when its "
                "connection is lost");
  }
}

void ConsumerContext::refuse_when_stopped() const {
  if (!options.stop.stop_requested()) return;
  throw Error(ErrorCode::stopped, "the consumer's stop token is set; no new message is begun");
}

bool ConsumerContext::can_go_on_after(const std::exception_ptr& error) const noexcept {
  return source.reconnects() || !is_fatal_to_session(error);
}

bool ConsumerContext::is_declared_transient(const std::exception_ptr& error) const noexcept {
  try {
    return options.is_transient && options.is_transient(error);
  } catch (...) {
    return false;
  }
}

bool ConsumerContext::counts(const std::exception_ptr& error) const noexcept {
  return is_failure(error) && !is_lease_lost(error) && !options.stop.stop_requested() && !is_declared_transient(error);
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

bool ConsumerContext::record_failure(const Message& message, const std::exception_ptr& error, bool& parked) noexcept {
  if (!counts(error)) return false;
  try {
    with_session(source, {}, [&](backend::Session& session) {
      const FailureRecord record(session, consumer);
      const int attempts = record.count(message, error, options.keep_error_text);
      parked = is_rejected(error) ? record.park(message) : park_if_exhausted(session, message, attempts);
    });
    return true;
  } catch (...) {
    return false;
  }
}

bool ConsumerContext::exceeds_max_attempts(int attempts) const noexcept {
  return options.max_attempts > 0 && attempts >= options.max_attempts;
}

bool ConsumerContext::park_if_exhausted(backend::Session& session, const Message& message, int attempts) const {
  return exceeds_max_attempts(attempts) && FailureRecord(session, consumer).park(message);
}

void ConsumerContext::notify(Event event) const noexcept {
  event.consumer = consumer;
  detail::notify(options.observer, event);
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

Result result_for(backend::ClaimedRow& row, std::string_view content_hash) {
  const Claim claim = claim_for(row, content_hash);
  // A stored result belongs to its own content, so a conflict does not get it.
  if (claim == Claim::conflict) return {.outcome = Outcome::conflict};
  Result result{.outcome = outcome_for(claim)};
  if (claim == Claim::already_consumed) {
    result.stored = std::move(row.result);
    result.age = row.age;
  }
  if (claim == Claim::in_progress) {
    result.retry_after =
        std::max(row.lease_remaining.value_or(std::chrono::milliseconds(0)), std::chrono::milliseconds(0));
  }
  return result;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
