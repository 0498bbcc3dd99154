#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/text.hpp"

namespace txinbox::cli {

using detail::find_invalid_utf8;

/// The number of characters. The text must be valid UTF-8.
std::size_t count_characters(std::string_view text);

/// The first characters of a text. The text must be valid UTF-8.
std::string_view first_characters(std::string_view text, std::size_t count);

/// The text with control characters, invalid bytes, and characters that change the direction of text as \xNN. So a key
/// from outside cannot send commands to the terminal, or show another text than it has.
std::string printable(std::string_view text);

/// The bytes in hexadecimal, after "0x".
std::string hex(std::string_view bytes);

/// The text itself if it is valid UTF-8 without control characters other than tab and line end, and without characters
/// that change the direction of text. A carriage return before a line feed is left out. Otherwise `hex`.
std::string text_or_hex(std::string_view bytes);

}  // namespace txinbox::cli
