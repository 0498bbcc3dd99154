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

  /// Errors: as `TxConsumer`'s constructors.
  ConsumerContext(SessionProvider source, std::string consumer, TxConsumerOptions options);

  /// The number of lost connections of the pool, for the cache of recent keys. 0 if there is no cache.
  std::uint64_t losses() { return recent.enabled() ? source.lost_connections() : 0; }

  /// Throws if the stop token is set.
  ///
  /// Errors: `Error` stopped.
  void refuse_when_stopped() const;

  /// Whether the source can give a usable session for another run after this error.
  bool can_go_on_after(const std::exception_ptr& error) const noexcept;

  /// Whether the options declare this error of a handler transient.
  bool is_declared_transient(const std::exception_ptr& error) const noexcept;

  /// Whether this error counts as a failure of its message.
  bool counts(const std::exception_ptr& error) const noexcept;

  /// Counts a failed delivery. Parks its message if it was rejected or has failed too often.
  ///
  /// Returns false if the failure was not counted. Its own errors are ignored: the caller reports the handler's error.
  bool record_failure(const Message&, const std::exception_ptr& error, bool& parked) noexcept;

  /// Whether a message with this many failures must be parked.
  bool exceeds_max_attempts(int attempts) const noexcept;

  /// Parks a message if it has failed too often. Returns false if it has not, or if its key has a row or is held.
  bool park_if_exhausted(backend::Session&, const Message&, int attempts) const;

  /// Passes the event to the observer, and ignores what the observer throws.
  void notify(Event) const noexcept;
};

/// Errors: `Error` invalid_argument.
template <class AnyHandler>
void refuse_empty(const AnyHandler& handler) {
  if (!handler) throw Error(ErrorCode::invalid_argument, "the handler is empty; give one that can be called");
}

/// Returns the result if the handler has asked for a later delivery; none for another error.
std::optional<Result> postponed_by(const std::exception_ptr& error) noexcept;

/// Returns the result of a message whose delivery ended with this error.
Result failed_with(std::exception_ptr error) noexcept;

/// Convert a claim to its outcome, and an outcome to its event.
Outcome outcome_for(Claim) noexcept;
EventType event_for(Outcome) noexcept;

/// Returns the result of a delivery that found this existing row.
Result result_for(backend::ClaimedRow&, std::string_view content_hash);

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
