#pragma once

#include <exception>
#include <string>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The fate of the count of a failure.
enum class FailureCount {
  none,    ///< The consumer does not count such a failure.
  stored,  ///< It is in the database.
  lost,    ///< The database did not take it.
};

/// An exception of a handler, or of another statement of the delivery, with what is known about it. It never leaves the
/// library: the caller gets `original_error`.
struct HandlerError {
  std::exception_ptr original;
  std::string_view database = {};  ///< The database of the connection. Empty if its error is not known.
  std::string code = {};           ///< The error of the connection.
  bool is_session_lost = false;    ///< The session could not be rolled back after the error.
  bool is_proven = false;          ///< It looks as if the database were away, but the message is the reason. It counts
                                   ///< as a failure of the message. Its event was sent before.
  FailureCount* count = nullptr;   ///< If it is set, it gets what became of the count.
};

/// Whether `error` is a `HandlerError` that is proven.
bool is_proven_failure(const std::exception_ptr& error) noexcept;

/// If `error` is a `HandlerError`, says what became of its count.
void set_count(const std::exception_ptr& error, FailureCount) noexcept;

/// The exception that the handler threw, if `error` is a `HandlerError`. Otherwise `error`.
std::exception_ptr original_error(const std::exception_ptr& error) noexcept;

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
