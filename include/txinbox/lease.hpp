#pragma once

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

/// The lease under which a handler runs. Lives for one run of the handler.
///
/// Threads: all but `delivery` may be called from any, as long as the handler runs.
class Lease {
 public:
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  const Message& message() const noexcept { return delivery_.message(); }

  /// The delivery; `delivery().store` keeps a result that later duplicates get.
  Delivery& delivery() noexcept { return delivery_; }

  /// A number that is greater than those of all earlier leases of this key, also of one that was forgotten
  /// or purged meanwhile. Pass it to the services that you call: one that remembers the greatest and refuses
  /// smaller ones cannot be changed by a worker that was taken over.
  ///
  /// It is the greater of the last fence and one, and the database's clock in microseconds. So, only once
  /// the row is gone, it can repeat or fall if that clock is set back, or (SQLite, whose clock counts
  /// milliseconds) if the key is leased, forgotten and leased again within one.
  std::int64_t fence() const noexcept;

  /// When the lease runs out at the earliest: counted on this process's steady clock, from before the
  /// statement was sent that made or renewed it.
  std::chrono::steady_clock::time_point expires_at() const noexcept;

  /// The time until then; zero when it may have run out.
  std::chrono::milliseconds remaining() const noexcept;

  /// Extends the lease to its full length from now.
  ///
  /// A lease that has run out is renewed as well, as long as nobody has taken over; `stop_token` stays set.
  ///
  /// Blocking: for a renewal of the heartbeat's that is at work, for a connection of the pool, and one round trip.
  /// Errors:   `Error` lease_lost when another worker has taken over: stop, and throw it on; the pool's and
  ///           the database's errors as they were, after which the lease may be renewed again.
  void renew();

  /// Set when the lease's time is over, when `renew` or the heartbeat finds that it is lost, and when the
  /// consumer's own token is set. A long handler looks at it, and throws to give the message back. Once set, it
  /// stays set.
  ///
  /// The time is counted by a timer that does no I/O: a renewal that hangs does not delay it. What you register with
  /// the token (`std::stop_callback`) runs on that timer's thread, which all leases of the consumer share: let it be
  /// short.
  std::stop_token stop_token() const noexcept;

 private:
  friend class detail::ActiveLease;
  Lease(detail::ActiveLease& held, const Message& message, std::stop_token stop);

  detail::ActiveLease& held_;
  Delivery delivery_;
};

TXINBOX_NAMESPACE_END
}  // namespace txinbox
