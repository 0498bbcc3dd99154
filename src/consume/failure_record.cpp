#include "consume/failure_record.hpp"

#include <algorithm>

#include <txinbox/error.hpp>
#include <txinbox/result.hpp>

#include "base/text.hpp"
#include "tables/consumed_message_table.hpp"
#include "tables/failed_message_table.hpp"
#include "types/handler_error.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

/// The limit of a payload. Its hexadecimal digits must fit into the largest packet that servers accept.
constexpr std::size_t most_payload = 4UL * 1024 * 1024;

/// The limits of an error's class and of its text.
constexpr std::size_t most_class = 255;
constexpr std::size_t most_text = 4096;

/// Cuts the text to its limit, and replaces characters that a database may refuse.
std::string storable(std::string text, std::size_t most) {
  text.resize(std::min(text.size(), most));
  const bool ascii = find_invalid_utf8(text) != std::string_view::npos;
  for (char& c : text) {
    if (c == '\0' || (ascii && static_cast<unsigned char>(c) >= 0x80)) c = '?';
  }
  return text;
}

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(original_error(error));
  } catch (const std::exception& e) {
    return storable(e.what(), most_text);
  } catch (...) {
    return {};
  }
}

std::string_view payload_of(const Message& message) {
  return message.payload.size() <= most_payload ? message.payload : std::string_view();
}

}  // namespace

int FailureRecord::count(const Message& message, const std::exception_ptr& error, bool keep_error_text) const {
  return FailedMessageTable(session_, consumer_, message)
      .add({.error_class = storable(error_class(error), most_class),
            .text = keep_error_text ? text_of(error) : std::string(),
            .payload = payload_of(message)});
}

int FailureRecord::count_crash(const Message& message) const {
  return FailedMessageTable(session_, consumer_, message)
      .add({.error_class = "process crashed", .text = {}, .payload = payload_of(message), .crashes = 1});
}

bool FailureRecord::park(const Message& message) const {
  return ConsumedMessageTable(session_).park(consumer_, message);
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
