#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>

#include <txinbox/error.hpp>
#include <txinbox/event.hpp>
#include <txinbox/result.hpp>
#include <txinbox/transaction.hpp>
#include <txinbox/tx_consumer.hpp>

#include "backend/session.hpp"
#include "base/retry_schedule.hpp"
#include "consume/duplicate_counter.hpp"
#include "consume/failure_record.hpp"
#include "consume/recent_key_cache.hpp"
#include "pool/session_provider.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// What all calls of one consumer share.
struct ConsumerContext {
  SessionProvider source;
  const std::string consumer;
  const TxConsumerOptions options;
  RecentKeyCache recent;
  DuplicateCounter duplicates;

  /// Errors: `Error` as `TxConsumer`'s constructors.
  ConsumerContext(SessionProvider source, std::string consumer, TxConsumerOptions options);

  /// The pool's lost connections, as the memory of recent keys counts them; 0 where there is none.
  std::uint64_t losses() { return recent.enabled() ? source.lost_connections() : 0; }

  /// Errors: `Error` stopped.
  void refuse_when_stopped() const;

  /// Whether the same source can be used for another run after this error.
  bool can_go_on_after(const std::exception_ptr& error) const noexcept;

  /// Whether the error of a handler is one that the options declare transient.
  bool is_declared_transient(const std::exception_ptr& error) const noexcept;

  /// Whether this error of a delivery counts against its message.
  bool counts(const std::exception_ptr& error) const noexcept;

  /// Counts a failed delivery, and parks its message when it has failed too often or was rejected. False: it
  /// was not counted. An error on the way does not count: the handler's does.
  bool record_failure(const Message&, const std::exception_ptr& error, bool& parked) noexcept;

  /// Whether a message that has failed this often is to be parked.
  bool exceeds_max_attempts(int attempts) const noexcept;

  /// Parks a message that has failed this often, if that is too often. False: it is not, or its key is held.
  bool park_if_exhausted(backend::Session&, const Message&, int attempts) const;

  /// Hands the event to the observer, and drops what it throws.
  void notify(Event) const noexcept;
};

/// Errors: `Error` invalid_argument.
template <class AnyHandler>
void refuse_empty(const AnyHandler& handler) {
  if (!handler) throw Error(ErrorCode::invalid_argument, "the handler is empty; give one that can be called");
}

/// The result of a delivery whose handler asked for a later one; none for another error.
std::optional<Result> postponed_by(const std::exception_ptr& error) noexcept;

/// The result of a message that failed with this error.
Result failed_with(std::exception_ptr error) noexcept;

/// What a claim's answer, or a result, is called elsewhere.
Outcome outcome_for(Claim) noexcept;
EventType event_for(Outcome) noexcept;

/// The result of a delivery that found this row of an earlier one.
Result result_for(backend::ClaimedRow&, std::string_view content_hash);

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
