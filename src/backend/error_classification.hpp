#pragma once

#include <exception>

#include <txinbox/error.hpp>
#include <txinbox/version.hpp>

#include "backend/error_class.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

// All are false, or `other`, for a null pointer.

/// Whether it is an `Error` of this code.
bool has_error_code(const std::exception_ptr&, ErrorCode) noexcept;

/// What the error means, if it is one of the database; `other` if not.
backend::ErrorClass error_class_of(const std::exception_ptr&) noexcept;

/// Whether it is an error of the database, whatever it means.
bool is_database_error(const std::exception_ptr&) noexcept;

/// Whether the session that had this error must be closed.
bool is_fatal_to_session(const std::exception_ptr&) noexcept;

/// Whether this error says that something around the messages is out of order and stays so until somebody
/// mends it: a full disk, no memory, an I/O error, a limit of the server's, a table that is gone. No message is
/// to blame, and none that comes next can be expected to fare better. Told by the database's code; a
/// `std::bad_alloc` is one, too.
bool is_environment_error(const std::exception_ptr&) noexcept;

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
