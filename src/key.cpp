#include "key.hpp"

#include <cstddef>
#include <string>

#include <fmt/format.h>
#include <txinbox/error.hpp>

namespace txinbox::inline TXINBOX_ABI::detail {
namespace {

constexpr std::size_t max_consumer = 64;
constexpr std::size_t max_key = 255;
constexpr std::size_t max_message_id = 255;
constexpr std::size_t max_result = 65'535;

void check_text(std::string_view what, std::string_view text, std::size_t min, std::size_t max) {
  if (text.size() < min) {
    throw Error(ErrorCode::invalid_key, fmt::format("{} is empty; it must have 1 to {} bytes", what, max));
  }
  if (text.size() > max) {
    throw Error(
        ErrorCode::invalid_key,
        fmt::format("{} has {} bytes; at most {} are allowed (use a digest of a longer one)", what, text.size(), max));
  }
  if (text.find('\0') != std::string_view::npos) {
    throw Error(ErrorCode::invalid_key, fmt::format("{} holds a NUL byte", what));
  }
  if (!is_utf8(text)) {
    throw Error(ErrorCode::invalid_key,
                fmt::format("{} is not valid UTF-8 (encode binary ones as hexadecimal or Base64)", what));
  }
}

/// The length of the well-formed sequence at the start of `s`, 0 if there is none.
std::size_t sequence_length(std::string_view s) noexcept {
  const auto byte = [s](std::size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0U; };
  const auto in = [](unsigned value, unsigned low, unsigned high) { return value >= low && value <= high; };
  const auto tail = [&](std::size_t i) { return in(byte(i), 0x80, 0xBF); };

  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (in(lead, 0xC2, 0xDF)) return tail(1) ? 2 : 0;
  if (in(lead, 0xE0, 0xEF)) {
    const unsigned low = lead == 0xE0 ? 0xA0 : 0x80;   // shorter would be overlong
    const unsigned high = lead == 0xED ? 0x9F : 0xBF;  // above are surrogates
    return in(byte(1), low, high) && tail(2) ? 3 : 0;
  }
  if (in(lead, 0xF0, 0xF4)) {
    const unsigned low = lead == 0xF0 ? 0x90 : 0x80;
    const unsigned high = lead == 0xF4 ? 0x8F : 0xBF;
    return in(byte(1), low, high) && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

void check_consumer(std::string_view consumer) { check_text("the consumer name", consumer, 1, max_consumer); }

void check_business_key(std::string_view key) { check_text("the business key", key, 1, max_key); }

void check_message(const Message& message) {
  check_business_key(message.business_key);
  check_text("the message id", message.message_id, 0, max_message_id);
}

void check_result(std::string_view result) {
  if (result.size() > max_result) {
    throw Error(ErrorCode::invalid_key,
                fmt::format("the result to store has {} bytes; at most {} are allowed (store a reference to it)",
                            result.size(), max_result));
  }
}

}  // namespace txinbox::inline TXINBOX_ABI::detail
