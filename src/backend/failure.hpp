#pragma once

#include <exception>
#include <memory>
#include <optional>

#include <txinbox/error.hpp>
#include <txinbox/result.hpp>

#include "backend/database_error.hpp"
#include "backend/error_class.hpp"
#include "base/private_api.hpp"

namespace txinbox {
TXINBOX_PRIVATE_API_BEGIN
namespace detail {

/// An exception with its meaning. The constructor finds the meaning once. Only types and codes decide it, never texts.
///
/// Without an exception, each question is answered with false or `other`.
class Failure {
 public:
  Failure() noexcept = default;  ///< No exception: nothing has failed.
  explicit Failure(std::exception_ptr) noexcept;

  /// The failure of the exception that is being handled. Call it in a catch block.
  static Failure current() noexcept { return Failure(std::current_exception()); }

  explicit operator bool() const noexcept { return error_ != nullptr; }

  const std::exception_ptr& error() const noexcept { return error_; }

  /// Whether the exception is an `Error` with this code.
  bool is(ErrorCode code) const noexcept { return code_ == code; }

  /// Whether the exception is a database error of any class.
  bool is_of_database() const noexcept { return database_ != nullptr; }

  /// The database error; null for another exception.
  const std::shared_ptr<const backend::DatabaseErrorCode>& database() const noexcept { return database_; }

  /// The class of a database error. It is `other` if the exception is not a database error.
  backend::ErrorClass error_class() const noexcept { return class_; }

  /// Whether the same step may succeed soon. See `txinbox::is_transient`.
  bool is_transient() const noexcept { return is_transient_; }

  /// Whether the cause is outside the message, and stays until somebody removes it: a full disk, no memory, an I/O
  /// error, a limit of the server, a missing table. The next messages will probably meet the same error. Only the
  /// database's code decides this. A `std::bad_alloc` is also such an error.
  bool is_of_environment() const noexcept { return is_of_environment_; }

  /// Whether the session that had this error must be closed.
  bool is_fatal_to_session() const noexcept { return backend::is_fatal_to_session(class_); }

  /// The action for the message. See `txinbox::action_for`.
  Action action() const noexcept;

  /// Returns the failure of a session that could not be rolled back after it. A transient error becomes a
  /// `HandlerError` of the class `connection_lost`: MySQL first reports a connection that was killed as an interrupted
  /// statement.
  Failure as_lost_session() const noexcept;

  [[noreturn]] void rethrow() const { std::rethrow_exception(error_); }

 private:
  std::exception_ptr error_;
  std::optional<ErrorCode> code_;
  std::shared_ptr<const backend::DatabaseErrorCode> database_;  ///< Shared, so that a copy needs no memory.
  backend::ErrorClass class_ = backend::ErrorClass::other;
  bool is_transient_ = false;
  bool is_of_environment_ = false;
};

}  // namespace detail
TXINBOX_PRIVATE_API_END
}  // namespace txinbox
