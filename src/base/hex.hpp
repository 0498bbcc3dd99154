#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Appends each byte as two lower-case hexadecimal digits. Each claim has some, so the text grows only once.
inline void append_hex(std::string& text, std::string_view bytes) {
  constexpr char digits[] = "0123456789abcdef";
  const std::size_t size = text.size();
  text.resize(size + 2 * bytes.size());
  char* at = text.data() + size;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    *at++ = digits[byte >> 4U];
    *at++ = digits[byte & 0x0FU];
  }
}

/// Writes each byte as two lower-case hexadecimal digits.
inline std::string to_hex(std::string_view bytes) {
  std::string hex;
  append_hex(hex, bytes);
  return hex;
}

/// Decodes pairs of hexadecimal digits that a database wrote.
inline std::string from_hex(std::string_view hex) {
  const auto value = [](char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; };
  std::string bytes;
  bytes.reserve(hex.size() / 2);
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(value(hex[i]) * 16 + value(hex[i + 1]));
  }
  return bytes;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
