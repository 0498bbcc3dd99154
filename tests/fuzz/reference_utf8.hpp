#pragma once

#include <cstddef>
#include <string_view>

namespace txinbox::fuzz {

struct Utf8ByIconv {
  std::size_t valid_bytes;  ///< The number of bytes before the first invalid character.
  std::size_t characters;   ///< The number of characters in these bytes.
};

/// Reads UTF-8 with the C library's iconv.
Utf8ByIconv read_by_iconv(std::string_view text);

inline bool is_utf8_by_iconv(std::string_view text) { return read_by_iconv(text).valid_bytes == text.size(); }

}  // namespace txinbox::fuzz
