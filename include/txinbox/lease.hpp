#pragma once

/// @file
/// The lease under which a `LeaseHandler` runs.

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>

#include <txinbox/delivery.hpp>
#include <txinbox/message.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

namespace detail {
class ActiveLease;
}

/// The lease under which a handler runs. The object exists for one run of the handler.
///
/// @threads any thread may call the members while the handler runs, except `delivery`.
class Lease {
 public:
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  /// The message that was passed to `consume`.
  const Message& message() const noexcept { return delivery_.message(); }

  /// The delivery. `delivery().store` stores a result that later duplicates get.
  Delivery& delivery() noexcept { return delivery_; }

  /// A number that is greater than the fences of all earlier leases of this key. This is also true if the key's row was
  /// forgotten or purged since then. Pass it to the services that you call. If a service remembers the greatest fence
  /// and refuses smaller ones, a worker that lost its lease cannot change anything there.
  ///
  /// It is the greater of two numbers: the last fence plus one, and the database's clock in microseconds.
  ///
  /// Known limitation, only after the row was removed: if the clock is set back, the new fence can be equal to an old
  /// one or smaller. On SQLite, whose clock counts milliseconds, it can be equal to the old one if the key is leased,
  /// forgotten and leased again within one millisecond.
  std::int64_t fence() const noexcept;

  /// The earliest time at which the lease can expire. It is counted on this process's steady clock, from before the
  /// statement was sent that got or renewed the lease.
  std::chrono::steady_clock::time_point expires_at() const noexcept;

  /// The time until `expires_at`; zero if the lease may have expired.
  std::chrono::milliseconds remaining() const noexcept;

  /// Extends the lease to its full length from now.
  ///
  /// It also renews a lease that has expired, if no other worker has taken the key over. `stop_token` then stays set.
  ///
  /// @blocking it waits for a renewal by the heartbeat that is still running, for a connection of the pool, and for one
  ///           round trip.
  /// @errors
  /// - `Error` lease_lost if another worker has taken the key over, or an operator has removed the row: stop, and let
  ///   this error through.
  /// - Errors of the pool and the database as they were: the lease can still be renewed.
  void renew();

  /// The token is set when the lease expires, when `renew` or the heartbeat finds that the lease is lost, and when the
  /// consumer's own token is set. A long handler checks it, and throws to give the message back. Once set, the token
  /// stays set.
  ///
  /// A timer sets the token. The timer does no I/O, so a renewal that hangs does not delay it. A `std::stop_callback`
  /// that you register with the token can run on the timer's thread. All leases of the consumer share this thread, so
  /// keep the callback short.
  std::stop_token stop_token() const noexcept;

 private:
  friend class detail::ActiveLease;
  Lease(detail::ActiveLease& held, const Message& message, std::stop_token stop);

  detail::ActiveLease& held_;
  Delivery delivery_;
};

TXINBOX_NAMESPACE_END
}  // namespace txinbox
