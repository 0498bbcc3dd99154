#pragma once

/// @file
/// Consumes messages: the claim and the handler's SQL in one transaction.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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
struct TxConsumerAccess;
}  // namespace detail

class Pool;

/// The behaviour of a batch after a message that failed, after a message that another worker has leased
/// (`in_progress`), or after a message whose handler asked for a later delivery (`postponed`).
enum class OnFailure {
  stop,            ///< The later messages are `not_run`. So no message overtakes an earlier one.
  skip,            ///< The other messages run.
  stop_at_parked,  ///< As `stop`. Also after a message that was parked before, the later messages are `not_run`.
};

/// Consumes messages: for each pair of consumer name and business key, the handler's SQL takes effect exactly once.
///
/// The claim (an insert into `txinbox_consumed_message`) and the handler's SQL commit in one transaction, or not at
/// all. The pattern is called idempotent consumer or transactional inbox (G. Hohpe, B. Woolf, "Enterprise Integration
/// Patterns", Idempotent Receiver).
class TxConsumer {
 public:
  /// Creates a consumer on a pool. It keeps the pool's connections alive: the `Pool` object may be moved or destroyed.
  ///
  /// @limits  `consumer` is 1 to 64 bytes of valid UTF-8 without NUL. Use one name for each consumer group. If two
  ///          services have the same name, each treats the messages of the other as its own duplicates.
  /// @errors  `Error` invalid_key, or invalid_argument for the options.
  /// @threads any number may call `consume`.
  TxConsumer(Pool& pool, std::string consumer, ConsumerOptions options = {});

  /// Creates a consumer on the caller's own connection: a SOCI session, or a connection of the database's client
  /// library (`ConnectionRef`). The connection must stay open as long as the consumer exists: on SQLite,
  /// `sqlite3_close` returns SQLITE_BUSY until then, because the consumer keeps its statements prepared. The consumer
  /// never reconnects the connection, and restores the settings that it changes. It verifies the tables at the first
  /// `consume`, and the connection's settings at each `consume`.
  ///
  /// The consumer uses the inbox of the schema or database in which it found the tables. If the connection finds
  /// another inbox later, after SET search_path or USE, `consume` throws unsafe_connection: a key there may be another
  /// message. Make a consumer for each inbox.
  ///
  /// If the connection is lost, destroy the consumer and create one on another connection.
  ///
  /// @limits  as the other constructor.
  /// @errors  as the other constructor; the errors of `ConnectionRef`.
  /// @threads only the connection's thread.
  TxConsumer(ConnectionRef connection, std::string consumer, ConsumerOptions options = {});

  /// Moves a consumer. The moved-from consumer may only be assigned to or destroyed. No thread may be inside a call of
  /// either consumer.
  TxConsumer(TxConsumer&&) noexcept;

  /// Moves as the constructor does. The consumer that this object was is destroyed.
  TxConsumer& operator=(TxConsumer&&) noexcept;

  /// Ends the consumer. No thread may be inside `consume`. If a connection of the pool is idle, the destructor writes
  /// the number of duplicates that is not yet in the database.
  ~TxConsumer();

  /// Consumes one delivery: claims the key, runs the handler, commits.
  ///
  /// If the failure of this delivery parks the message (`max_attempts`, `rejected`), `consume` returns `parked`, with
  /// the error in `Result::error`. If the handler throws `RetryLater`, `consume` returns `postponed`.
  ///
  /// @transaction its own. On the caller's own session, no transaction may be open.
  /// @blocking    at most `retry.max_elapsed` and one more run. One run takes at most the sum of: `acquire_timeout`;
  ///              `connect_timeout`; `lock_timeout` for the claim; the handler's own time, in which each statement
  ///              takes at most `statement_timeout`; `statement_timeout` for the commit. docs/reference/blocking.md has
  ///              the whole sum.
  /// @errors      after any error, do not acknowledge: `action_for` says what to do.
  /// - What the handler threw, after the rollback, and after the failure was counted in a short transaction of its own.
  ///   If the failure cannot be counted, the handler's error is thrown nevertheless.
  /// - `Error` transaction_lost if the handler ended the transaction.
  /// - `Error` invalid_key for a message that breaks the limits of `Message`, before any statement is sent.
  /// - `Error` invalid_argument for an empty handler.
  /// - `Error` with another code of `ErrorCode`, for example stopped, nested_consume, acquire_timeout or a schema code.
  /// - A database error that remains after all retries, as it was.
  ///
  /// @threads     with a pool any number. A handler on the same pool must not call it (`nested_consume`).
  Result consume(const Message& message, const Handler& handler);

  /// Consumes several deliveries in one transaction: one claim of all keys, the handlers of the new keys in the given
  /// order, one commit. The results are the same as those of one `consume` for each message, but this function is many
  /// times faster.
  ///
  /// - With one handler for all new messages (`BatchHandler`), SQL can work on sets. That is many times faster than a
  ///   statement for each message.
  /// - If a handler fails, the transaction is rolled back and runs again with a savepoint for each message. So only the
  ///   message whose handler failed fails. With a `BatchHandler` alone, smaller parts run instead, down to the message
  ///   that fails. Messages before it are committed in transactions of their own, and `attempt` counts every run in
  ///   which a message took part. The results are the same.
  /// - If a key comes twice, the second message is a duplicate of the first, if the first was consumed. With `skip`,
  ///   the second message runs if the first was not consumed. If the failure of the first parked the key, the second
  ///   gets `parked`, and its handler does not run.
  /// - After a transient error the batch runs again. If the error persists, the batch is split into smaller parts. A
  ///   part that has committed stays committed.
  /// - An error of the environment ends the batch at its message, also with `skip`. The later messages are `not_run`.
  /// - With `count_starts`, a handler runs for each message alone.
  ///
  /// The session's settings are restored after the batch, not between its messages. So what a handler sets (a search
  /// path, a time zone) stays for the next handler. There is one exception: if a handler stops the clock (`timestamp`
  /// on MariaDB and MySQL), txinbox starts it again for the next claim.
  ///
  /// @transaction its own, one or more. On the caller's own session, no transaction may be open.
  /// @blocking    as `consume`, with the time of all handlers. `retry.max_elapsed` counts for the whole batch,
  ///              `retry.max_runs` for each part. Another consumer that wants one of the keys waits until the batch
  ///              commits, at most its own `lock_timeout`.
  /// @limits      any number of messages, also none; 50 to 500 are sensible.
  /// @errors      it throws only if nothing was sent:
  /// - `Error` stopped, nested_consume, forked, acquire_timeout, transaction_open, or a schema code.
  /// - `Error` invalid_argument for an empty handler.
  /// - A database error from connecting, or from the read of the erased keys.
  ///
  /// With `count_starts`, it throws only errors for which `action_for` says `stop`. The others are the result `failed`
  /// of the first message.
  ///
  /// A later error (an invalid key, what a handler throws, a database error that outlives its retries) is in the
  /// result of its message.
  ///
  /// @threads     as `consume`.
  /// @return one result for each message, in the given order. With `stop`, at most one message failed (`failed`, or
  ///         `parked` with an error), is `in_progress` or is `postponed`, and all messages behind it are `not_run`.
  ///         With `stop_at_parked`, this also holds for `parked` without an error.
  std::vector<Result> consume_batch(std::span<const Message> messages, const BatchHandlers& handlers,
                                    OnFailure on_failure = OnFailure::stop);

  /// The consumer's name. It is valid as long as the consumer exists.
  std::string_view name() const noexcept;

  /// The options that the consumer was created with. They are valid as long as the consumer exists.
  const ConsumerOptions& options() const noexcept;

 private:
  friend struct detail::TxConsumerAccess;

  class Impl;
  std::unique_ptr<Impl> impl_;
};

TXINBOX_API_END
}  // namespace txinbox
