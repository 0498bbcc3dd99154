#pragma once

#include <exception>

#include <txinbox/error.hpp>
#include <txinbox/version.hpp>

#include "backend/error_class.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

// For a null pointer, each function returns false or `other`.

/// Whether the exception is an `Error` with this code.
bool has_error_code(const std::exception_ptr&, ErrorCode) noexcept;

/// Returns the class of a database error. Returns `other` if the exception is not a database error.
backend::ErrorClass error_class_of(const std::exception_ptr&) noexcept;

/// Whether the exception is a database error of any class.
bool is_database_error(const std::exception_ptr&) noexcept;

/// Whether the session that had this error must be closed.
bool is_fatal_to_session(const std::exception_ptr&) noexcept;

/// Returns the error of a session that could not be rolled back after it. A transient error becomes a `HandlerError` of
/// the class `connection_lost`: MySQL first reports a connection that was killed as an interrupted statement.
std::exception_ptr as_lost_session(const std::exception_ptr&) noexcept;

/// Whether the cause of this error is outside the message, and stays until somebody removes it: a full disk, no memory,
/// an I/O error, a limit of the server, a missing table. The next messages will probably meet the same error. Only the
/// database's code decides this. A `std::bad_alloc` is also such an error.
bool is_environment_error(const std::exception_ptr&) noexcept;

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
