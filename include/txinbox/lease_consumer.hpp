#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include <txinbox/event.hpp>
#include <txinbox/handler.hpp>
#include <txinbox/lease.hpp>
#include <txinbox/message.hpp>
#include <txinbox/result.hpp>
#include <txinbox/retry_policy.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

class Pool;

struct LeaseOptions {
  /// How long a worker has the key for itself, from 1 ms to 24 days: longer than the handler usually takes,
  /// or with a heartbeat. A worker that dies keeps others from its message for so long.
  std::chrono::milliseconds lease{60'000};

  /// How long `consume` waits for another worker's result instead of answering `in_progress`. It holds no
  /// connection meanwhile.
  std::chrono::milliseconds wait{0};

  /// How often a background thread renews the lease while the handler runs, at most half of `lease`; it
  /// borrows a connection of its own for that. A third of the lease is sensible. Zero: never.
  std::chrono::milliseconds heartbeat{0};

  /// As in `TxConsumerOptions`.
  int max_attempts = 0;

  /// For the claim and for the completion, each by itself; the handler never runs again within one `consume`.
  RetryPolicy retry = {};

  /// Ends waits and retries; a handler that runs is told by `Lease::stop_token`, and is completed when it
  /// returns. A `consume` that begins after it was set throws `stopped`.
  std::stop_token stop = {};

  /// As in `TxConsumerOptions`, but not from the heartbeat's thread.
  std::function<void(const Event&)> observer = {};

  /// As in `TxConsumerOptions`; the handler does not run again within one `consume`.
  std::function<bool(const std::exception_ptr&)> is_transient = {};

  /// As in `TxConsumerOptions`: costs a read and two writes for each message. What waits for others holds its
  /// lease meanwhile, and renews it before its handler runs.
  bool count_starts = false;

  /// As in `TxConsumerOptions`.
  bool keep_error_text = false;
};

/// Runs a handler under a lease: one worker at a time for each pair of consumer name and business key, and
/// none any more once one has completed.
///
/// The key's row is claimed as `consuming`, with a lease by the database's clock; the handler runs; the row
/// becomes `consumed`. Who finds it meanwhile gets `in_progress`; after the lease has run out, the next
/// takes over. Each step is conditional on the lease's token and fence, so that a worker which was taken
/// over can neither complete, release nor extend its successor's (C. Gray, D. Cheriton, "Leases", 1989;
/// M. Kleppmann, "How to do distributed locking", 2016, on fencing). docs/internals/lease-model.md has a model of it.
///
/// What it promises is less than `TxConsumer`'s: at least once for the handler, and at most one completion.
class LeaseConsumer {
 public:
  /// The consumer keeps the pool's connections alive; the `Pool` object may be moved or destroyed.
  ///
  /// Limits:  as `TxConsumer`'s. The same name in a `TxConsumer` means the same messages.
  /// Errors:  `Error` invalid_key, or invalid_argument for the options.
  /// Threads: `consume` may be called from any number.
  LeaseConsumer(Pool& pool, std::string consumer, LeaseOptions options = {});

  LeaseConsumer(LeaseConsumer&&) noexcept;
  LeaseConsumer& operator=(LeaseConsumer&&) noexcept;
  ~LeaseConsumer();

  /// Consumes one delivery: takes the lease, runs the handler, completes.
  ///
  /// When the handler throws, the lease is released, so that the redelivery runs at once. As with `TxConsumer`, a
  /// delivery whose failure parks its message returns `parked`, and one whose handler throws `RetryLater` `postponed`.
  ///
  /// Transaction: one of its own for each step, none while the handler runs.
  /// Blocking:    the claim and the completion at most `retry.max_elapsed` and one run more, each; `wait`;
  ///              the handler's own time; after it, a renewal of the heartbeat's that is at work, at most the longer
  ///              of `connect_timeout`, and of `statement_timeout` or `lock_timeout` and 5 s more.
  /// Errors:      what the handler threw; `Error` lease_lost when another worker has taken over before the
  ///              completion: the handler ran, and nothing is acknowledged; also when the lease is over before the
  ///              handler could begin: it is shorter than the round trips to the database; other codes of error.hpp; a
  ///              database error that outlived its retries, as it was: when it is the completion's, the
  ///              handler runs again after the lease. Whatever is thrown: do not acknowledge; `action_for`
  ///              says what to do instead.
  /// Threads:     any number, also from inside another `LeaseHandler`; not from a handler of a `TxConsumer`
  ///              on the same pool (`nested_consume`).
  Result consume(const Message& message, const LeaseHandler& handler);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

TXINBOX_NAMESPACE_END
}  // namespace txinbox
