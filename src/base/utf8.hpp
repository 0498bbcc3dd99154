#pragma once

#include <cstddef>
#include <string_view>

#include <txinbox/version.hpp>

// UTF-8 as in RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The length of the valid character at the front of a text that is not empty, 0 when there is none.
std::size_t character_length(std::string_view text) noexcept;

/// The offset of the first byte that is not valid, or npos.
std::size_t find_invalid_utf8(std::string_view text) noexcept;

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
