#pragma once

#include <exception>

#include <txinbox/error.hpp>
#include <txinbox/version.hpp>

namespace txinbox::inline TXINBOX_ABI::detail {

/// Whether it is an `Error` of this code; false for a null pointer.
bool has_code(const std::exception_ptr& error, ErrorCode code) noexcept;

}  // namespace txinbox::inline TXINBOX_ABI::detail
