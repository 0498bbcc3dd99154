#include "message/key.hpp"

#include <cstddef>
#include <string>

#include <fmt/format.h>
#include <txinbox/error.hpp>

#include "base/text.hpp"
#include "message/erased_key.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

constexpr std::size_t max_consumer = 64;
constexpr std::size_t max_key = 255;
constexpr std::size_t max_message_id = 255;
constexpr std::size_t largest_result = 1024UL * 1024;

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
  if (find_invalid_utf8(text) != std::string_view::npos) {
    throw Error(ErrorCode::invalid_key,
                fmt::format("{} is not valid UTF-8 (encode binary ones as hexadecimal or Base64)", what));
  }
}

}  // namespace

void check_consumer(std::string_view consumer) { check_text("the consumer name", consumer, 1, max_consumer); }

void check_business_key(std::string_view key) { check_text("the business key", key, 1, max_key); }

void check_message(const Message& message) {
  check_business_key(message.business_key);
  if (message.business_key.starts_with(erased_key_prefix)) {
    throw Error(ErrorCode::invalid_key,
                fmt::format("the business key begins with {}, as the keys of erased messages do", erased_key_prefix));
  }
  check_text("the message id", message.message_id, 0, max_message_id);
  if (message.valid_for.count() < 0) {
    throw Error(ErrorCode::invalid_key, "Message::valid_for is negative; zero keeps the row valid for ever");
  }
}

void check_result(std::string_view result, std::size_t most) {
  if (result.size() > most) {
    throw Error(ErrorCode::result_too_large,
                fmt::format("the result to store has {} bytes; at most {} are allowed (store a reference to it, or "
                            "raise max_result)",
                            result.size(), most));
  }
}

void check_max_result(std::size_t max_result) {
  if (max_result > largest_result) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("max_result is {}; it must be at most {}", max_result, largest_result));
  }
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
