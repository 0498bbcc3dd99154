#pragma once

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

/// Why txinbox refused or gave up. The name says what the caller must mend; new codes may be added.
enum class ErrorCode {
  invalid_key,           ///< A key, consumer name, message id or result breaks its limits.
  invalid_argument,      ///< A URL, option or time-out makes no sense.
  schema_missing,        ///< The tables are not there: apply the migrations.
  schema_outdated,       ///< The tables are older than this library: apply the newer migrations.
  schema_too_new,        ///< The tables no longer support this library: upgrade the library.
  schema_mismatch,       ///< The tables differ from the migrations; the text lists every difference.
  unsupported_database,  ///< Not SQLite, MariaDB, MySQL or PostgreSQL, or too old, or not compiled in.
  unsafe_connection,     ///< The session's settings could lose or merge messages; the text says the remedy.
  transaction_open,      ///< The session is inside a transaction that is not ours.
  transaction_lost,      ///< The handler ended our transaction; nothing is acknowledged.
  rejected,              ///< Thrown by a handler: this message must not be delivered again.
  acquire_timeout,       ///< No connection of the pool became free in time, or no turn with `count_starts`.
  nested_consume,        ///< `consume` inside a handler of the same pool would wait for itself.
  unknown_state,         ///< A row holds a state that this library does not know.
  stopped,               ///< The stop token was set before the work began.
  lease_lost,            ///< Another worker has taken the lease over, or may have.
  forked,                ///< The pool was opened before fork(), by the parent; a child opens its own.
  access_refused,        ///< The server refuses user, password or database, or the file cannot be opened.
  retry_later,           ///< Thrown by a handler as `RetryLater`: this message is to be delivered later.
};

/// The code's name, as in the enumeration.
std::string_view to_string(ErrorCode) noexcept;

/// The one exception type of txinbox. Its text names the input and the remedy, and never holds a value
/// that was bound into SQL; the business key is left out as well, since keys can be personal data.
///
/// What is *not* an `Error`: a duplicate (it is a value, see result.hpp), a database error that
/// outlived its retries (rethrown as the `soci::soci_error` that it was), and whatever a handler threw.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& text) : std::runtime_error(text), code_(code) {}

  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

/// Thrown by a handler that cannot do its work now, such as while another service is away: the delivery is rolled back,
/// no failure is counted, and `consume` returns `Outcome::postponed` with the delay in `Result::retry_after`.
///
/// The delay is for the broker loop: txinbox does not keep it. A delivery that comes sooner runs the handler.
class RetryLater : public Error {
 public:
  /// A negative delay counts as zero.
  explicit RetryLater(std::chrono::milliseconds delay,
                      const std::string& text = "the handler asks for a later delivery of this message")
      : Error(ErrorCode::retry_later, text), delay_(std::max(delay, std::chrono::milliseconds::zero())) {}

  std::chrono::milliseconds delay() const noexcept { return delay_; }

 private:
  std::chrono::milliseconds delay_;
};

TXINBOX_NAMESPACE_END
}  // namespace txinbox
