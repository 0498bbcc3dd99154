#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include <txinbox/result.hpp>
#include <txinbox/tx_consumer.hpp>

#include "backend/failure.hpp"
#include "backend/session.hpp"
#include "consume/consumer_policy.hpp"
#include "consume/duplicate_counter.hpp"
#include "consume/erased_keys.hpp"
#include "consume/keys_in_flight.hpp"
#include "consume/pause_check.hpp"
#include "consume/recent_key_cache.hpp"
#include "pool/session_provider.hpp"
#include "transaction/recovery_backlog.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The objects that all calls of one consumer on a database share.
struct ConsumerContext : ConsumerPolicy {
  SessionProvider source;
  RecentKeyCache recent;
  ErasedKeys erased;
  DuplicateCounter duplicates;
  KeysInFlight in_flight;  ///< Used with `claim_wait`.
  RecoveryBacklog backlog;
  PauseCheck pause;

  /// Errors: as `TxConsumer`'s constructors.
  ConsumerContext(SessionProvider source, std::string consumer, ConsumerOptions options);

  /// The number of lost connections of the pool, for the cache of recent keys. 0 if there is no cache.
  std::uint64_t losses() { return recent.enabled() ? source.lost_connections() : 0; }

  /// As `ErasedKeys::read`.
  ErasedKeys::Reading read_erased() { return erased.read(source, consumer, options.stop); }

  /// As `PauseCheck::is_paused`.
  bool is_paused() { return pause.is_paused(source, consumer, options.stop); }

  /// Whether the message is parked or torn, and so no operator has decided about it. It takes one SELECT.
  ///
  /// Errors: those of the database.
  bool is_parked(const Message&);

  /// Whether the source can give a usable session for another run after this error.
  bool can_go_on_after(const Failure&) const noexcept;

  /// Resolves the claims of earlier calls, as each call does first. Its own errors are ignored: the next attempt or the
  /// next call meets them again.
  void resolve_backlog() noexcept;

  /// Sends the events of the claims of earlier calls that this call has marked as torn. Call it without a session: a
  /// listener may need one.
  void notify_backlog() noexcept;

  /// Counts a failed delivery. Parks its message if it was rejected or has failed too often.
  ///
  /// Returns false if the failure was not counted. Its own errors are ignored: the caller reports the handler's error.
  bool record_failure(const Message&, const Failure&, Counting, bool& parked) noexcept;

  /// Parks a message if it has failed too often. Returns false if it has not, or if its key has a row or is held.
  bool park_if_exhausted(backend::Session&, const Message&, int attempts) const;
};

/// Returns the result of a delivery that found this existing row.
Result result_for(backend::ClaimedRow&, std::string_view content_hash);

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
