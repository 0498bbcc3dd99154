#pragma once

/// @file
/// How a delivery ended, what an error means, and what the broker loop must do.

#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

/// The answer to a claim of a `Transaction` or of a `LeaseStore`: whether the caller got the key, and if not, why not.
enum class Claim {
  claimed,           ///< The caller has the key: until its lease expires or, with a `Transaction`, if it commits.
  already_consumed,  ///< An earlier delivery of this key was committed.
  conflict,          ///< The row of this key has other content.
  in_progress,       ///< Another worker has a lease on the key, or a batch has not decided its claim yet.
  parked,            ///< The row is parked or torn.
  discarded,         ///< An operator has discarded the message.
};

/// The name of the enumerator, such as "claimed".
std::string_view to_string(Claim) noexcept;

/// How one delivery ended. Later versions may add outcomes, so call `action_for` instead of writing a switch.
enum class Outcome {
  consumed,          ///< The handler ran and its transaction committed.
  already_consumed,  ///< An earlier delivery of this key was committed. The handler did not run.
  conflict,          ///< The key came with other content. The handler did not run.
  in_progress,       ///< Another delivery of the key is running. The handler did not run. A `LeaseConsumer` returns it,
                     ///< and a `TxConsumer` with `claim_wait`. A `TxConsumer` also returns it if a handler of a batch
                     ///< has committed this message's claim, and txinbox has not removed it yet
                     ///< (docs/reference/guard.md).
  parked,            ///< The message failed too often or was rejected, now or earlier, or its claim is torn.
  failed,            ///< Only in a batch: this delivery failed, and `error` says why. `consume` throws instead.
  not_run,           ///< The batch stopped before this message.
  discarded,         ///< An operator has discarded the message. The handler did not run.
  postponed,         ///< The handler threw `RetryLater` to ask for a later delivery. Its SQL was rolled back.
};

/// The name of the enumerator, such as "consumed".
std::string_view to_string(Outcome) noexcept;

/// The outcome of a delivery, and the values that belong to it.
struct [[nodiscard]] Result {
  Outcome outcome;  ///< How the delivery ended. It says which of the other members have a value.

  /// For failed: the error. For parked: the error of this delivery, if that error parked the message; otherwise null.
  /// For postponed: what the handler threw.
  std::exception_ptr error = {};
  std::optional<std::string> stored = {};  ///< The result that the handler stored, in this delivery or an earlier one.

  /// For postponed, and for in_progress if a lease is held: how long to wait for the redelivery. 0: not known.
  std::chrono::milliseconds retry_after{0};

  /// For consumed: the handler called `Delivery::refuse`. Its SQL was rolled back, and `stored` is its answer.
  bool refused = false;

  /// For already_consumed: the time since the original was consumed, as `Message::valid_for` counts it. None if the
  /// cache of recent keys answered, or if the original is in the same batch.
  std::optional<std::chrono::milliseconds> age = {};
};

/// The next action of the broker loop.
enum class Action {
  acknowledge,  ///< Nothing more must be done for this message. Acknowledge it.
  redeliver,    ///< Do not acknowledge. The broker delivers it again.
  dead_letter,  ///< Publish it to the dead-letter queue, then acknowledge it.
  stop,         ///< Stop consuming. No message can be handled until somebody fixes the set-up.
};

/// The name of the enumerator, such as "acknowledge".
std::string_view to_string(Action) noexcept;

/// Returns the action for a message whose `consume` returned.
///
/// - `acknowledge`: consumed, already_consumed, discarded
/// - `dead_letter`: parked, conflict. The delivery that parks its message gets `dead_letter`, too.
/// - `redeliver`: in_progress, postponed, not_run
/// - failed: the action for `Result::error`
Action action_for(const Result&) noexcept;

/// Returns the action for a message whose `consume` threw.
///
/// - `dead_letter`: invalid_key, rejected, result_too_large, invalid_message, unreadable
/// - `stop`, because somebody must fix the cause first: the schema codes, unsupported_database, unsafe_connection,
///   access_refused, invalid_argument, transaction_open, nested_consume, forked, broker_refused
/// - `redeliver`: every other error, and a null pointer. Pause before the redelivery if the database is not available
///   or has no resources left.
Action action_for(const std::exception_ptr&) noexcept;

/// Whether the same call can succeed later without the help of an operator.
///
/// Transient errors are: a deadlock, a lock or statement time-out, a serialization failure, SQLITE_BUSY, a lost
/// connection, a server that is read-only or shuts down, no free connection in the pool. The database's code decides,
/// never its text. A full disk, no memory and similar errors are not transient: somebody must fix them. Exceptions of
/// other kinds and a null pointer are not transient.
bool is_transient(const std::exception_ptr&) noexcept;

/// A short name for an error. It holds no value of the message, so it is safe for metrics, logs and the table of failed
/// messages.
///
/// - `Error`: its code (`transaction_lost`)
/// - a transient error of a database: `deadlock`, `lock_timeout`, `serialization_failure`, `statement_timeout`,
///   `connection_lost` or `read_only`
/// - another error of a database: the database and its code (`postgresql 23505`)
/// - another exception: its type (`std::invalid_argument`)
/// - a null pointer: empty
std::string error_class(const std::exception_ptr&);

/// Describes an error for logs. For a database's error, it is one line with the code and its meaning ("MariaDB/MySQL
/// error 1213 (deadlock)"). It contains no value of the message, while SOCI's `what()` contains the values of the
/// statement that failed. For any other exception, it is the `what()` as it is: it can have several lines, and values
/// that the handler has put there.
///
/// A null pointer gives an empty text.
///
/// @param error what was thrown.
/// @param with_server_text also the server's own text. That text can hold values of the message.
std::string describe_error(const std::exception_ptr& error, bool with_server_text = false);

TXINBOX_API_END
}  // namespace txinbox
