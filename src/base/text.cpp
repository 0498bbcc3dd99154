#include "base/text.hpp"

#include <cstdint>
#include <cstring>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

std::string one_line(std::string_view text) {
  std::string line;
  bool space = false;
  for (const char c : text) {
    if (c == '\n' || c == '\r' || c == ' ') {
      space = true;
      continue;
    }
    if (space && !line.empty()) line += ' ';
    space = false;
    line += c;
  }
  return line;
}

namespace {

bool starts_with_eight_of_ascii(std::string_view text) noexcept {
  std::uint64_t bytes = 0;
  if (text.size() < sizeof(bytes)) return false;
  std::memcpy(&bytes, text.data(), sizeof(bytes));
  return (bytes & 0x8080808080808080U) == 0;
}

}  // namespace

std::size_t character_length(std::string_view text) noexcept {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  auto continues = [&](std::size_t i, unsigned low, unsigned high) {
    return i < text.size() && byte(i) >= low && byte(i) <= high;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return continues(1, 0x80, 0xBF) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const unsigned low = first == 0xE0 ? 0xA0 : 0x80;   // no overlong form
    const unsigned high = first == 0xED ? 0x9F : 0xBF;  // no surrogate
    return continues(1, low, high) && continues(2, 0x80, 0xBF) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const unsigned low = first == 0xF0 ? 0x90 : 0x80;
    const unsigned high = first == 0xF4 ? 0x8F : 0xBF;
    return continues(1, low, high) && continues(2, 0x80, 0xBF) && continues(3, 0x80, 0xBF) ? 4 : 0;
  }
  return 0;
}

std::size_t find_invalid_utf8(std::string_view text) noexcept {
  std::size_t at = 0;
  while (at < text.size()) {
    if (starts_with_eight_of_ascii(text.substr(at))) {
      at += 8;
      continue;
    }
    const auto length = character_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
