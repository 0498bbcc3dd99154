#pragma once

/// @file
/// Consumes messages whose handler cannot be in one transaction, under a lease.

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include <txinbox/connection_ref.hpp>
#include <txinbox/consumer_options.hpp>
#include <txinbox/delivery.hpp>
#include <txinbox/handler.hpp>
#include <txinbox/message.hpp>
#include <txinbox/result.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

namespace detail {
class ActiveLease;
struct LeaseConsumerAccess;
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

class LeaseStore;
class Pool;

/// How long the leases of a `LeaseConsumer` last.
struct LeaseTerms {
  /// For how long a worker has the key for itself, from 1 ms to 24 days. It should be longer than the usual time of the
  /// handler, unless a heartbeat renews the lease. If a worker crashes, its message waits until the lease expires.
  std::chrono::milliseconds length{60'000};

  /// The interval at which a background thread renews the lease while the handler runs. The thread uses a connection of
  /// its own. The interval is at most half of `length`; a third is sensible. Zero: no renewal.
  std::chrono::milliseconds heartbeat{0};
};

/// Runs a handler under a lease. For each pair of consumer name and business key, only one worker at a time has the
/// lease. Once a handler has completed, no later delivery runs the handler again.
///
/// First the consumer inserts the row of the key as `consuming`, with a lease that the database's clock measures. Then
/// the handler runs. Then the row becomes `consumed`. A delivery that finds a valid lease gets `in_progress`. After the
/// lease has expired, the next delivery takes the key over.
///
/// Each step compares the lease's token and fence. So a worker that lost its lease cannot complete, release or extend
/// the lease of its successor (C. Gray, D. Cheriton, "Leases", 1989; M. Kleppmann, "How to do distributed locking",
/// 2016, on fencing). docs/internals/lease-model.md has a model of the protocol.
///
/// It guarantees less than `TxConsumer`: the handler runs at least once, and the message is completed at most once.
class LeaseConsumer {
 public:
  /// Creates a consumer on a pool. It keeps the pool's connections alive: the `Pool` object may be moved or destroyed.
  ///
  /// @limits  as the constructor of `TxConsumer`. A `TxConsumer` with the same name shares the keys of this consumer.
  /// @errors  `Error` invalid_key, or invalid_argument for the terms or the options, or if `recent_keys` is set.
  /// @threads any number may call `consume`.
  LeaseConsumer(Pool& pool, std::string consumer, LeaseTerms terms = {}, ConsumerOptions options = {});

  /// Creates a consumer on the caller's own connection. The rules of `TxConsumer` on a caller's connection apply. The
  /// handler may use the connection for its own transactions. It must end them before it renews the lease or returns.
  /// @limits  as the other constructor.
  /// @errors  as the other constructor; `Error` invalid_argument if `heartbeat` is set, because a heartbeat renews the
  ///          lease on a thread and a connection of its own; the errors of `ConnectionRef`.
  /// @threads only the connection's thread.
  LeaseConsumer(ConnectionRef connection, std::string consumer, LeaseTerms terms = {}, ConsumerOptions options = {});

  /// Creates a consumer whose leases are in a store other than the database, such as that of `open_redis`. The
  /// documentation of the store says which data the store can lose.
  ///
  /// @limits  as the other constructors. `max_conflicts` has no effect: a conflict is an outcome and an event.
  /// @errors  as the other constructors; `Error` invalid_argument if `count_starts` or `keep_error_text` is set, or if
  ///          the store is null.
  /// @threads any number may call `consume`.
  LeaseConsumer(std::shared_ptr<LeaseStore> store, std::string consumer, LeaseTerms terms = {},
                ConsumerOptions options = {});

  /// Moves a consumer. The moved-from consumer may only be assigned to or destroyed. No thread may be inside a call of
  /// either consumer.
  LeaseConsumer(LeaseConsumer&&) noexcept;

  /// Moves as the constructor does. The consumer that this object was is destroyed.
  LeaseConsumer& operator=(LeaseConsumer&&) noexcept;

  /// Ends the consumer. No thread may be inside `consume`. If a connection of the pool is idle, the destructor writes
  /// the number of duplicates that is not yet in the database.
  ~LeaseConsumer();

  /// Consumes one delivery: gets the lease, runs the handler, completes the row.
  ///
  /// If the handler throws, the lease is released, so that the next delivery runs at once. If the failure parks the
  /// message, `consume` returns `parked`. If the handler throws `RetryLater`, `consume` returns `postponed`.
  ///
  /// @transaction one of its own for each step; none while the handler runs.
  /// @blocking    the sum of: `retry.max_elapsed` and one more run, for the claim; the same for the completion;
  ///              `claim_wait`; the handler's own time; a renewal by the heartbeat that is still running when the
  ///              handler ends. That renewal takes at most the longest of `connect_timeout`, `statement_timeout` plus
  ///              5 s, and `lock_timeout` plus 5 s.
  /// @errors      after any error, do not acknowledge: `action_for` says what to do.
  /// - What the handler threw.
  /// - `Error` lease_lost if another worker has taken the key over before the completion: the handler ran, and nothing
  ///   is acknowledged. The same error is thrown if the lease ends before the handler can begin, because the lease is
  ///   shorter than the round trips to the database.
  /// - `Error` invalid_argument for an empty handler, forked in a child of the process that created the consumer, and
  ///   other codes of `ErrorCode`.
  /// - A database error that outlived its retries, as it was. If it came from the completion, the handler runs again
  ///   after the lease has expired.
  ///
  /// @threads     any number may call it, also from inside another `LeaseHandler`. A handler of a `TxConsumer` on the
  ///              same pool must not (`nested_consume`).
  Result consume(const Message& message, const LeaseHandler& handler);

  /// The consumer's name. It is valid as long as the consumer exists.
  std::string_view name() const noexcept;

  /// The options that the consumer was created with. They are valid as long as the consumer exists.
  const ConsumerOptions& options() const noexcept;

  /// The terms of its leases.
  const LeaseTerms& terms() const noexcept;

 private:
  friend struct detail::LeaseConsumerAccess;

  class Impl;
  std::unique_ptr<Impl> impl_;
};

TXINBOX_API_END
}  // namespace txinbox
