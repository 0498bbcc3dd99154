#pragma once

/// @file
/// The exceptions of the library, and their codes.

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

/// Why txinbox refused or gave up. The name says what the caller must fix. Later versions may add codes.
enum class ErrorCode {
  invalid_key,           ///< A key, consumer name or message id is missing or breaks its limits.
  invalid_argument,      ///< A URL, option, time-out, JSON Pointer or handler is not valid.
  schema_missing,        ///< The tables do not exist: apply the migrations.
  schema_outdated,       ///< The tables are too old for this library: apply the newer migrations.
  schema_too_new,        ///< The tables no longer support this library: upgrade the library.
  schema_mismatch,       ///< The tables differ from the migrations. The text lists every difference.
  unsupported_database,  ///< This build does not know the database, or the session is not connected.
  unsafe_connection,     ///< The session's settings could lose or merge messages. The text says the remedy.
  transaction_open,      ///< The session is inside a transaction that txinbox did not open.
  transaction_lost,      ///< The handler ended the transaction that txinbox opened. Nothing is acknowledged.
  rejected,              ///< A handler throws this: the message must not be delivered again.
  acquire_timeout,       ///< No connection of the pool became free in time. With `count_starts`, an attempt that had to
                         ///< wait for other attempts waited too long.
  nested_consume,        ///< `consume` was called inside a handler on the same pool or session.
  unknown_state,         ///< A row has a state that this library does not know, or changes during each try to claim it.
  stopped,               ///< The stop token was set before the work began.
  lease_lost,            ///< Another worker took the lease over, an operator removed its row, or the lease ended before
                         ///< the handler began.
  forked,                ///< The parent process opened the pool, or created the `LeaseConsumer`, before fork(). A child
                         ///< must make its own.
  access_refused,        ///< The server refuses the user, password or database, or the file cannot be opened.
  retry_later,           ///< A handler throws this as `RetryLater`: the message must be delivered later.
  broker_refused,        ///< The broker refuses the set-up of a source: a queue or topic does not exist, a right is
                         ///< missing. The text says what to fix.
  result_too_large,      ///< A handler's result is longer than `max_result`.
  invalid_message,       ///< A message that was added to the outbox breaks the limits of `OutgoingMessage`.
  unreadable,            ///< A text is not JSON, or the reader of a key finds no body.
};

/// The code's name, as in the enumeration.
std::string_view to_string(ErrorCode) noexcept;

/// The exception type of txinbox's own errors. Its text names the invalid input and how to fix it. The text never
/// contains a value that was bound into SQL. It never contains a business key either, because keys can be personal
/// data.
///
/// These are *not* an `Error`: a duplicate (it is a value, see result.hpp), a database error that remains after all
/// retries (it is rethrown as it was, see `DatabaseError`), and any other exception of a handler.
class Error : public std::runtime_error {
 public:
  /// Handlers throw it with the code `rejected`. `text` is what `what()` returns.
  Error(ErrorCode code, const std::string& text) : std::runtime_error(text), code_(code) {}

  /// The code of the error. Compare the code, not the text: a text may change in any version.
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

/// A handler throws this if it cannot do its work now, for example because another service is not available. txinbox
/// rolls the delivery back and counts no failure. `consume` returns `Outcome::postponed` with the delay in
/// `Result::retry_after`.
///
/// txinbox does not store the delay: the broker loop must delay the redelivery. A delivery that arrives earlier runs
/// the handler.
class RetryLater : public Error {
 public:
  /// A negative delay counts as zero.
  explicit RetryLater(std::chrono::milliseconds delay,
                      const std::string& text = "the handler asks for a later delivery of this message")
      : Error(ErrorCode::retry_later, text), delay_(std::max(delay, std::chrono::milliseconds::zero())) {}

  /// How long to wait before the message is delivered again. It is never negative.
  std::chrono::milliseconds delay() const noexcept { return delay_; }

 private:
  std::chrono::milliseconds delay_;
};

/// A database error of txinbox's own statements. It contains the name of the database and the database's code.
///
/// The thrown object is also a `std::exception`. In a program that links txinbox::txinbox it is also SOCI's exception
/// for the database, such as `soci::mysql_soci_error`.
///
///     try {
///       consumer.consume(message, handler);
///     } catch (const txinbox::DatabaseError& error) {
///       log(error.database(), error.code());
///     }
class DatabaseError {
 public:
  virtual ~DatabaseError() = default;

  /// "sqlite3", "mysql" (MariaDB and MySQL) or "postgresql".
  std::string_view database() const noexcept { return database_; }

  /// The number of a SQLite, MariaDB or MySQL error, such as "1213"; the SQLSTATE of a PostgreSQL error. 08006 if
  /// libpq has lost the connection.
  const std::string& code() const noexcept { return code_; }

  /// The text of the error, with the database's own text. That text can contain values of the message: do not log it
  /// if readers of the log must not see these values. `describe_error` makes a text without them.
  virtual const char* what() const noexcept = 0;

 protected:
  /// Makes an error. `database` must be one of the names above.
  DatabaseError(std::string_view database, std::string code) : database_(database), code_(std::move(code)) {}

  /// Copies the other error.
  DatabaseError(const DatabaseError&) = default;

  /// Copies the other error.
  DatabaseError& operator=(const DatabaseError&) = default;

 private:
  std::string_view database_;
  std::string code_;
};

/// A `LeaseStore` throws it if a step failed, or if nobody can know whether the step took effect.
///
/// Do not acknowledge the message after such an error: `action_for` says `redeliver`.
class LeaseStoreError : public std::runtime_error {
 public:
  /// Whether the same step can succeed later without anybody's help.
  enum class Kind {
    transient,  ///< A lost connection, a time-out, a server that starts or is read-only. `is_transient` is true.
    permanent,  ///< No memory left, a disk error, a wrong type: somebody must fix it. It does not count as a failure.
  };

  /// `store` is the name of the product, such as "redis". `code` is the server's own code, such as "OOM", and holds no
  /// value of the message. `text` is what `what()` returns.
  LeaseStoreError(Kind kind, const std::string& store, std::string code, const std::string& text)
      : std::runtime_error(text), kind_(kind), code_(store + " " + std::move(code)) {}

  /// Whether a retry can succeed.
  Kind kind() const noexcept { return kind_; }

  /// The store and its code, such as "redis OOM". `error_class` also returns this.
  const std::string& code() const noexcept { return code_; }

 private:
  Kind kind_;
  std::string code_;
};

TXINBOX_API_END
}  // namespace txinbox
