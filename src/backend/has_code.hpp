#pragma once

#include <exception>

#include <txinbox/error.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Whether it is an `Error` of this code; false for a null pointer.
bool has_code(const std::exception_ptr& error, ErrorCode code) noexcept;

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
