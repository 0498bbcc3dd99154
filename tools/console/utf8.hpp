#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/utf8.hpp"

namespace txinbox::cli {

using detail::find_invalid_utf8;

/// How many characters the text has; it must be valid.
std::size_t count_characters(std::string_view text);

/// The text with control characters and invalid bytes as \xNN, so that a key from outside cannot
/// drive the terminal.
std::string printable(std::string_view text);

/// The text as it is when it is valid UTF-8 without control characters other than tab and line feed,
/// else its bytes in hexadecimal.
std::string text_or_hex(std::string_view bytes);

}  // namespace txinbox::cli
