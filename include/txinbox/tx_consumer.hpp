#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <txinbox/delivery.hpp>
#include <txinbox/event.hpp>
#include <txinbox/handler.hpp>
#include <txinbox/message.hpp>
#include <txinbox/recent_keys.hpp>
#include <txinbox/result.hpp>
#include <txinbox/retry_policy.hpp>
#include <txinbox/version.hpp>

namespace soci {
class session;
}

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

class Pool;

struct TxConsumerOptions {
  /// When and how often a transaction runs again after a transient error.
  RetryPolicy retry = {};

  /// Ends waits and retries; the transaction in hand finishes. A `consume` that begins after it was
  /// set throws `stopped`.
  std::stop_token stop = {};

  /// Told of each event after the fact, on the consuming thread, with no transaction open and no
  /// connection held. What it throws is dropped.
  std::function<void(const Event&)> observer = {};

  /// A memory of this process of what it saw committed, which answers duplicates without the
  /// database. Off by default. Only with a pool.
  RecentKeys recent_keys = {};

  /// After how many failed deliveries a message is parked: later ones get `parked`, and its handler does
  /// not run again until an operator says so (`retry_failed`). Each delivery whose handler throws is counted
  /// in `txinbox_failed_message`, except for transient errors, errors of the environment (a full disk, no
  /// memory, a table that is gone: docs/guides/failed-messages.md) and while `stop` is set; `transaction_lost`
  /// counts, and so does what the handler's SQL makes the commit fail with. A handler that throws `Error`
  /// `rejected` parks its message at once. 0: never park, since a bad deployment would discard all messages.
  int max_attempts = 0;

  /// Says which errors of handlers are transient besides those of the database, such as a time-out of a service that
  /// the handler calls, or a deadlock on a connection of its own. Such a delivery runs again as after a transient error
  /// (a message of a batch and one under a lease end with it, to be delivered again), and is not counted as a failure.
  /// It is called on the consuming thread; what it throws means no.
  std::function<bool(const std::exception_ptr&)> is_transient = {};

  /// Counts the start of an attempt too, so that a message which kills the process is parked in the end.
  /// Costs a read and a second commit for each message, and makes a batch run message by message. A process's
  /// death makes each message that was in flight a suspect, which runs alone in its process from then on: others
  /// with `count_starts` wait, at most their pool's `acquire_timeout`. A death while it runs alone counts. So a
  /// message that kills each time is parked after `max_attempts` + 1 deaths. Only with a pool.
  bool count_starts = false;

  /// Keeps the last error's text in `txinbox_failed_message`, up to 4096 bytes. A database's text, and often
  /// a handler's, holds values of the message: personal data, perhaps.
  bool keep_error_text = false;
};

/// What a batch does after a message that failed, that another worker holds (`in_progress`), or whose handler asked for
/// a later delivery (`postponed`).
enum class OnFailure {
  stop,  ///< What follows is `not_run`: the committed prefix is exact, and no message overtakes another.
  skip,  ///< The others go on.
};

/// Runs a handler's SQL exactly once in effect for each pair of consumer name and business key.
///
/// The claim (an insert into `txinbox_consumed_message`) and the handler's SQL commit in one
/// transaction or not at all: the idempotent consumer, or transactional inbox (G. Hohpe, B. Woolf,
/// "Enterprise Integration Patterns", Idempotent Receiver).
class TxConsumer {
 public:
  /// On a pool's connections. The consumer keeps the pool's connections alive; the `Pool` object may
  /// be moved or destroyed.
  ///
  /// Limits:  `consumer` is 1 to 64 bytes of valid UTF-8 without NUL. One name for each consumer
  ///          group: two services with one name would take each other's messages for consumed.
  /// Errors:  `Error` invalid_key, or invalid_argument for the options.
  /// Threads: `consume` may be called from any number.
  TxConsumer(Pool& pool, std::string consumer, TxConsumerOptions options = {});

  /// On a session of the caller's, which must outlive the consumer. It never reconnects, and leaves
  /// the session's settings as it found them. The session and the tables are checked at the first
  /// `consume`, the session's settings at each.
  ///
  /// Threads: the session's only.
  TxConsumer(soci::session& session, std::string consumer, TxConsumerOptions options = {});

  TxConsumer(TxConsumer&&) noexcept;
  TxConsumer& operator=(TxConsumer&&) noexcept;
  ~TxConsumer();

  /// Consumes one delivery: claims the key, runs the handler, commits.
  ///
  /// Transaction: its own. No transaction may be open on a session of the caller's.
  /// Blocking:    at most `retry.max_elapsed` and one run more; one run is `acquire_timeout` +
  ///              `connect_timeout` + `lock_timeout` (the claim) + the handler's own time, in which
  ///              each statement takes at most `statement_timeout`, + `statement_timeout` (the
  ///              commit). docs/reference/blocking.md has the sum in full.
  /// A delivery whose failure parks its message (`max_attempts`, `rejected`) returns `parked`, with what the handler
  /// threw in `Result::error`. One whose handler throws `RetryLater` returns `postponed`.
  ///
  /// Errors:      what the handler threw, after the rollback and after it was counted in a short transaction
  ///              of its own (if that fails, nothing is said of it); `Error` transaction_lost when the handler
  ///              ended the transaction; invalid_argument for an empty handler; other codes of error.hpp; a database
  ///              error that outlived its retries, as the `soci::soci_error` that it was. Whatever is thrown: do not
  ///              acknowledge; `action_for` says what to do instead.
  /// Threads:     with a pool any number, but not from inside a handler on the same pool
  ///              (`nested_consume`).
  Result consume(const Message& message, const Handler& handler);

  /// Consumes several deliveries in one transaction: one claim of all keys, the handlers of the new
  /// ones in the given order, one commit. The same as `consume` for each in turn, many times faster.
  ///
  /// Where a handler fails, the transaction is rolled back and runs again with a savepoint for each
  /// message, so that only the one to blame fails. A message whose key came earlier in the batch is a
  /// duplicate of that one if that one was consumed, and else, with `skip`, runs in its stead. A
  /// transient error runs the batch again, in ever smaller parts if it persists; a part that has
  /// committed stays so. An error of the environment ends the batch at its message, also with `skip`: those
  /// behind it are `not_run`.
  ///
  /// The session's settings are restored after the batch, not between its messages: what a handler sets
  /// (a search path, a time zone) the next one meets. A clock that a handler stops (`timestamp` on MariaDB and
  /// MySQL) runs again for the next claim.
  ///
  /// Returns one result for each message, in the given order. With `stop` there is at most one
  /// message that failed (`failed`, or `parked` with an error), is `in_progress` or `postponed`, and all behind it are
  /// `not_run`.
  ///
  /// Transaction: its own, one or more. None may be open on a session of the caller's.
  /// Blocking:    as `consume`, with the time of all handlers; `retry.max_elapsed` counts for the
  ///              whole batch, `retry.max_attempts` for each part. Other consumers that want one of the
  ///              keys wait as long.
  /// Limits:      any number of messages, also none; 50 to 500 are sensible.
  /// Errors:      thrown only while nothing was sent: `Error` stopped, invalid_argument for an empty handler,
  /// nested_consume, forked,
  ///              acquire_timeout, transaction_open, a schema code, a database error from connecting. What fails
  ///              afterwards (an invalid key, what a handler throws, a database error that outlives its
  ///              retries) is in the result of its message, as `consume` would have thrown it.
  /// Threads:     as `consume`.
  std::vector<Result> consume_batch(std::span<const Message> messages, const Handler& handler,
                                    OnFailure on_failure = OnFailure::stop);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

TXINBOX_NAMESPACE_END
}  // namespace txinbox
