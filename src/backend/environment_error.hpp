#pragma once

#include <exception>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Whether this error says that something around the messages is out of order and stays so until somebody
/// mends it: a full disk, no memory, an I/O error, a limit of the server's, a table that is gone. No message is
/// to blame, and none that comes next can be expected to fare better. Told by the database's code; a
/// `std::bad_alloc` is one, too.
bool is_environment_error(const std::exception_ptr& error) noexcept;

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
