#include "utf8.hpp"

#include <cstdint>
#include <cstring>

#include <fmt/format.h>

namespace txinbox::cli {
namespace {

// The length of the valid character at the front, 0 when there is none.
std::size_t character_length(std::string_view text) {
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

bool starts_with_eight_of_ascii(std::string_view text) {
  std::uint64_t bytes = 0;
  if (text.size() < sizeof(bytes)) return false;
  std::memcpy(&bytes, text.data(), sizeof(bytes));
  return (bytes & 0x8080808080808080U) == 0;
}

// C0, DEL, and C1, which some terminals obey in UTF-8 too.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7F;
  return character.size() == 2 && first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
}

}  // namespace

std::size_t find_invalid_utf8(std::string_view text) {
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

std::size_t count_characters(std::string_view text) {
  std::size_t count = 0;
  for (char c : text) count += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
  return count;
}

std::string printable(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const auto length = character_length(text.substr(at));
    const auto character = text.substr(at, length == 0 ? 1 : length);
    if (length == 0 || is_control(character)) {
      for (char c : character) result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      result += character;
    }
    at += character.size();
  }
  return result;
}

std::string text_or_hex(std::string_view bytes) {
  bool is_text = true;
  for (std::size_t at = 0; at < bytes.size() && is_text;) {
    const auto length = character_length(bytes.substr(at));
    const auto character = bytes.substr(at, length);
    is_text = length != 0 && (!is_control(character) || character == "\t" || character == "\n");
    at += length;
  }
  if (is_text) return std::string(bytes);
  std::string result = "0x";
  for (char c : bytes) result += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return result;
}

}  // namespace txinbox::cli
