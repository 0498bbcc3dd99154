#include "console/utf8.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace txinbox::cli {
namespace {

using detail::character_length;

// C0, DEL, and C1. Some terminals obey C1 characters in UTF-8, too.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7F;
  return character.size() == 2 && first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
}

// They change the order of the characters around them, or end the line: U+061C, U+200E, U+200F, U+2028 to U+202E, and
// U+2066 to U+2069.
bool moves_text(std::string_view character) {
  if (character == "\xD8\x9C") return true;
  if (character.size() != 3 || character[0] != '\xE2') return false;
  const auto last = static_cast<unsigned char>(character[2]);
  if (character[1] == '\x80') return last == 0x8E || last == 0x8F || (last >= 0xA8 && last <= 0xAE);
  return character[1] == '\x81' && last >= 0xA6 && last <= 0xA9;
}

}  // namespace

std::size_t count_characters(std::string_view text) {
  std::size_t count = 0;
  for (char c : text) count += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
  return count;
}

std::string_view first_characters(std::string_view text, std::size_t count) {
  std::size_t at = 0;
  for (; at < text.size() && count > 0; --count) {
    at += std::max<std::size_t>(detail::character_length(text.substr(at)), 1);
  }
  return text.substr(0, at);
}

std::string printable(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const auto length = character_length(text.substr(at));
    const auto character = text.substr(at, length == 0 ? 1 : length);
    if (length == 0 || is_control(character) || moves_text(character)) {
      for (char c : character) result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      result += character;
    }
    at += character.size();
  }
  return result;
}

std::string hex(std::string_view bytes) {
  std::string digits = "0x";
  for (char c : bytes) digits += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return digits;
}

std::string text_or_hex(std::string_view bytes) {
  std::string text;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto length = character_length(bytes.substr(at));
    const auto character = bytes.substr(at, length);
    at += length;
    if (character == "\r" && bytes.substr(at).starts_with('\n')) continue;
    const bool is_text =
        length != 0 && !moves_text(character) && (!is_control(character) || character == "\t" || character == "\n");
    if (!is_text) return hex(bytes);
    text += character;
  }
  return text;
}

}  // namespace txinbox::cli
