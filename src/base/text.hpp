#pragma once

// Text: one line of it, and UTF-8 as in RFC 3629 (no overlong forms, no surrogates, nothing above U+10FFFF).

#include <cstddef>
#include <string>
#include <string_view>

#include "base/private_api.hpp"

namespace txinbox {
TXINBOX_PRIVATE_API_BEGIN
namespace detail {

/// Returns the text with spaces instead of line ends, and with no spaces around it. An error text of a database can
/// have several lines.
std::string one_line(std::string_view text);

/// Returns the length of the first character of a text that is not empty; 0 if that character is not valid.
std::size_t character_length(std::string_view text) noexcept;

/// Returns the offset of the first byte that begins no valid character, or npos.
std::size_t find_invalid_utf8(std::string_view text) noexcept;

}  // namespace detail
TXINBOX_PRIVATE_API_END
}  // namespace txinbox
