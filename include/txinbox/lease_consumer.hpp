#pragma once

/// @file
/// Consumes messages whose handler cannot be in one transaction, under a lease.

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include <txinbox/connection_ref.hpp>
#include <txinbox/consumer_options.hpp>
#include <txinbox/handler.hpp>
#include <txinbox/lease.hpp>
#include <txinbox/message.hpp>
#include <txinbox/result.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

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
  ///              `claim_wait`;
  ///              the handler's own time; a renewal by the heartbeat that is still running when the handler ends. That
  ///              renewal takes at most the longest of `connect_timeout`, `statement_timeout` plus 5 s, and
  ///              `lock_timeout` plus 5 s.
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
  class Impl;
  std::unique_ptr<Impl> impl_;
};

TXINBOX_NAMESPACE_END
}  // namespace txinbox
