#pragma once

/// @file
/// The options of consumers.

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <stop_token>

#include <txinbox/listener.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

/// How `consume` runs a transaction again after a transient error: exponential backoff with full jitter. Each wait is a
/// random time between zero and a bound, and the bound doubles each time. Without random waits, competing consumers
/// would try again at the same time and collide again (M. Brooker, "Exponential Backoff And Jitter", AWS Architecture
/// Blog, 2015).
struct RetryPolicy {
  /// How many runs there are at most, including the first; at least 1. With 1 there is no retry.
  int max_runs = 6;

  /// The bound of the first wait. Zero: no wait.
  std::chrono::milliseconds initial_backoff{20};

  /// The greatest bound. The bound does not double beyond it.
  std::chrono::milliseconds max_backoff{2'000};

  /// No new run begins when this time has passed since `consume` was called. A run that has begun is not interrupted.
  std::chrono::milliseconds max_elapsed{30'000};
};

/// Options of a consumer's cache of recent keys. The cache holds keys that this consumer saw committed. It answers
/// their duplicates with `already_consumed` without asking the database. This helps when a broker redelivers many
/// messages.
///
/// The cache contains each key itself and the hash of its content, so it never confuses two keys. It does not answer a
/// delivery that has other content, or whose row has a stored result. The database answers these deliveries.
///
/// The cache belongs to one consumer object of one process. When the pool loses a connection, the cache is cleared,
/// because a failover may have lost what was committed.
///
/// The cache does not see what others change in the database. So for at most `max_age` it still answers
/// `already_consumed` for a key whose row was removed or is no longer `consumed`:
/// - after `forget` or a purge, or after another process marked the row torn;
/// - after the restore of a backup that is older than the key, if this process lost no connection during the restore;
/// - after a failover that closes no connection of this process, for example because the server's host disappeared,
///   until a statement fails.
///
/// So restart the consumers after a restore. After `forget`, wait for `max_age` before the message is sent again.
struct RecentKeys {
  /// How many of the latest keys the cache holds; 0 switches it off. Each key takes at most 0.5 KiB.
  std::size_t capacity = 0;

  /// How long a key stays in the cache, from 1 ms to 24 days. Keep it short, because it limits how long the cache can
  /// be wrong (see above). A broker's redeliveries usually come within seconds.
  std::chrono::milliseconds max_age{60'000};
};

/// How a `TxConsumer` or a `LeaseConsumer` waits, tries again, counts failures and parks messages.
struct ConsumerOptions {
  /// When and how often a transaction runs again after a transient error. Under a lease, the claim and the completion
  /// each have all attempts and the whole `max_elapsed`. The handler never runs again within one `consume`.
  RetryPolicy retry = {};

  /// How long `consume` waits if another delivery of the key is running. After this time it returns `in_progress`,
  /// without an error. Zero: it does not wait. It holds no connection while it waits.
  ///
  /// None, the default: a `TxConsumer` waits in the database, at most the pool's `lock_timeout`, and then tries again
  /// as `retry` says. A batch always waits in this way. A `LeaseConsumer` does not wait. In one rare case,
  /// `in_progress` comes without this option, too: see `Outcome::in_progress`.
  ///
  /// With a `TxConsumer`, it limits only the wait for the key, not the waits for the handler's own locks. If the other
  /// delivery uses the same consumer object, `consume` finds it at once, in memory. Otherwise a claim that does not
  /// wait finds it. This claim takes up to 5 ms on PostgreSQL, and up to a second on MySQL if both deliveries begin at
  /// the same moment. On SQLite, such a claim is not possible: a transaction locks the whole database, so the claim
  /// waits for it. A server whose version is not supported waits as it does without this option.
  std::optional<std::chrono::milliseconds> claim_wait = {};

  /// Once it is set, waits and retries end. A running transaction is completed. A handler under a lease can see it in
  /// `Lease::stop_token`; when that handler returns, its message is completed. A `consume` that begins later throws
  /// `stopped`. `run` ends, too.
  std::stop_token stop = {};

  /// They get the events of the consumer and of `run`, and see its calls, attempts and handlers begin and end.
  /// `on_event` makes a listener of a function. The heartbeat's thread of a `LeaseConsumer` never calls them.
  Listeners listeners = {};

  /// Whether `Outbox::add` in a handler copies the trace context of the handler's delivery (`Message::incoming`) into
  /// the messages that it adds: the headers `traceparent`, `tracestate` and `baggage` of W3C Trace Context and W3C
  /// Baggage. So a trace goes on through this service, although the service has no tracer. A header that the message
  /// has is never replaced. A handler with several messages (`BatchHandler`) forwards nothing, because an outgoing
  /// message can belong to several of them. A `baggage` of more than 4 KiB is not copied.
  bool forward_trace_context = true;

  /// A cache of keys that this consumer saw committed. It answers duplicates without the database. It is off by
  /// default. It needs a `TxConsumer` on a pool.
  RecentKeys recent_keys = {};

  /// After this many failed deliveries, a message is parked: later deliveries get `parked`, and its handler does not
  /// run again until an operator calls `retry_failed`. A handler that throws `Error` `rejected` parks its message at
  /// once.
  ///
  /// 0, the default: the count never parks a message, because a bad deployment would park all messages.
  ///
  /// Each delivery that failed after its handler had started is counted in `txinbox_failed_message`. This includes
  /// `transaction_lost`, and errors of the commit that the handler's SQL caused. These are not counted: transient
  /// errors, `RetryLater`, errors of the environment (a full disk, no memory, a missing table:
  /// docs/guides/failed-messages.md), errors for which `action_for` says `stop`, and every error while `stop` is set.
  /// But `run` also counts a lost connection or an error of the environment if other messages show that this message is
  /// its cause.
  int max_attempts = 0;

  /// Declares more errors of handlers as transient, besides those of the database. Examples are a time-out of a service
  /// that the handler calls, or a deadlock on a connection of its own.
  ///
  /// It is not needed for errors of the connection that the handler got: after an exception of an unknown kind, txinbox
  /// asks that connection for the code of its last error.
  ///
  /// After such an error `consume` runs the transaction again. In a batch and under a lease, the delivery ends with the
  /// error instead, and must be delivered again. The error is never counted as a failure.
  ///
  /// It is called on the thread that consumes. If it throws, the error is not transient.
  std::function<bool(const std::exception_ptr&)> is_transient = {};

  /// Also counts crashes of the process, so that a message that always crashes its process is parked. Each attempt
  /// writes a marker before its handler runs.
  ///
  /// If a process crashes, every message with a running attempt becomes a suspect. From then on, a suspect runs alone
  /// in its process: other attempts with `count_starts` wait, at most `acquire_timeout` of their pool. A crash while a
  /// suspect runs alone is counted. So a message that always crashes its process is parked after `max_attempts` + 1
  /// crashes.
  ///
  /// It costs a read and a second commit for each message, and a batch runs message by message. Under a lease, it costs
  /// a read and two writes, and an attempt that waits for others keeps and renews its lease. It needs a pool.
  bool count_starts = false;

  /// Stores the text of the last error in `txinbox_failed_message`, at most 4096 bytes. The text of a database error,
  /// and often that of a handler, holds values of the message. These can be personal data.
  bool keep_error_text = false;

  /// The largest result that a handler may store, in bytes; at most 1 MiB. A larger one ends the handler with
  /// `result_too_large`. Every duplicate reads the result, so keep it small.
  std::size_t max_result = 65'535;

  /// For each key, at most this many different contents are recorded as conflicts (`txinbox_conflicting_message`). So a
  /// sender cannot fill the table. Zero: none is recorded. A few more can be recorded if they come at the same moment.
  /// The listeners get an event for every conflict, recorded or not.
  std::size_t max_conflicts = 8;
};

TXINBOX_API_END
}  // namespace txinbox
