#pragma once

#include <cstddef>
#include <string_view>

namespace txinbox::fuzz {

struct Utf8ByIconv {
  std::size_t valid_bytes;  ///< Before the first character that is none.
  std::size_t characters;   ///< In them.
};

/// UTF-8 as the C library's iconv reads it.
Utf8ByIconv read_by_iconv(std::string_view text);

inline bool is_utf8_by_iconv(std::string_view text) { return read_by_iconv(text).valid_bytes == text.size(); }

}  // namespace txinbox::fuzz
