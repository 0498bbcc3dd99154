#pragma once

#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

/// How one delivery ended. New outcomes may be added: let `action_for` decide, rather than a switch.
enum class Outcome {
  consumed,          ///< The handler ran and its transaction committed.
  already_consumed,  ///< An earlier delivery did.
  conflict,          ///< Same key, other content; the handler did not run.
  in_progress,       ///< Another worker holds a lease on the key.
  parked,            ///< Given up: failed too often, now or earlier, or torn by a handler that committed it itself.
  failed,            ///< This delivery of a batch failed; `error` says why. `consume` throws instead.
  not_run,           ///< A batch stopped before it.
  discarded,         ///< Parked once, and then given up for good by an operator; the handler did not run.
  postponed,         ///< The handler asked for a later delivery (`RetryLater`): nothing is left of it.
};

std::string_view to_string(Outcome) noexcept;

/// The outcome of a delivery and what belongs to it.
struct [[nodiscard]] Result {
  Outcome outcome;
  std::exception_ptr error = {};  ///< failed; parked: what this delivery failed with, null if an earlier one parked it;
                                  ///< postponed: what the handler threw.
  std::optional<std::string> stored = {};             ///< What the handler stored, in this delivery or an earlier one.
  std::chrono::milliseconds retry_after{0};           ///< in_progress, postponed: when to deliver again.
  std::optional<std::chrono::milliseconds> age = {};  ///< already_consumed: since the original was consumed. None
                                                      ///< where a memory of recent keys answered.
};

/// What the broker loop does next.
enum class Action {
  acknowledge,  ///< The effect is in the database: tell the broker so.
  redeliver,    ///< Do not acknowledge; the broker delivers again.
  dead_letter,  ///< Publish it to the dead-letter queue, then acknowledge.
  stop,         ///< Stop consuming: no message can be handled until someone mends the set-up.
};

std::string_view to_string(Action) noexcept;

/// What to do with a message whose `consume` returned: `acknowledge` for consumed, already_consumed and discarded,
/// `dead_letter` for parked and conflict, `redeliver` for in_progress, postponed and not_run, and for failed what its
/// error says. The delivery that parks its message gives `dead_letter`, too.
Action action_for(const Result&) noexcept;

/// What to do with a message whose `consume` threw: `dead_letter` for invalid_key and rejected,
/// `stop` for what must be mended first (the schema codes, unsupported_database, unsafe_connection,
/// access_refused, invalid_argument, transaction_open, nested_consume, forked), else `redeliver`: after a pause where
/// the database is away or out of resources. A null pointer gives `redeliver`.
Action action_for(const std::exception_ptr&) noexcept;

/// Whether the same call can be expected to succeed later without anybody's help: a deadlock, a lock
/// or statement time-out, a serialization failure, SQLITE_BUSY, a lost connection, a server that is
/// read-only or shutting down, no free connection in the pool. Told by the database's code, never by
/// its text. A full disk, no memory and the like are not transient: somebody has to mend them. An exception of
/// another kind is not transient, nor is a null pointer.
bool is_transient(const std::exception_ptr&) noexcept;

/// A short name for an error that holds no value of the message: for metrics, logs and the table of failed
/// messages. An `Error` gives its code (`transaction_lost`), a transient error of a database what it is
/// (`deadlock`, `lock_timeout`, `serialization_failure`, `statement_timeout`, `connection_lost`,
/// `read_only`), another one the database and its code (`postgresql 23505`), an exception of another kind
/// its type (`std::invalid_argument`). Empty for a null pointer.
std::string error_class(const std::exception_ptr&);

/// Describes an error in one line that holds no value of the message: for logs. SOCI's `what()` holds the values that a
/// failed statement had. A database's error gives its code and what the code means ("MariaDB/MySQL error 1213
/// (deadlock)"). An exception of another kind gives its `what()`.
///
/// `with_server_text`: also the server's own text. That text can hold values of the message.
///
/// A null pointer gives an empty text.
std::string describe_error(const std::exception_ptr&, bool with_server_text = false);

TXINBOX_NAMESPACE_END
}  // namespace txinbox
