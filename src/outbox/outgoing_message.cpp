#include "outbox/outgoing_message.hpp"

#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <txinbox/error.hpp>

#include "base/text.hpp"
#include "base/uuid.hpp"
#include "message/json/json_value.hpp"
#include "telemetry/running_handler.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

constexpr std::size_t longest_text = 255;
constexpr std::size_t longest_payload = 4UL * 1024 * 1024;
constexpr std::size_t longest_headers = 65'535;

[[noreturn]] void refuse_message(const std::string& what) { throw Error(ErrorCode::invalid_message, what); }

void check_text(std::string_view what, std::string_view text) {
  if (text.find('\0') != std::string_view::npos || find_invalid_utf8(text) != std::string_view::npos) {
    refuse_message(fmt::format("OutgoingMessage::{} is not valid UTF-8 without NUL", what));
  }
}

void check_text(std::string_view what, std::string_view text, std::size_t least) {
  if (text.size() < least || text.size() > longest_text) {
    refuse_message(
        fmt::format("OutgoingMessage::{} has {} bytes; it must have {} to {}", what, text.size(), least, longest_text));
  }
  check_text(what, text);
}

/// Checks an id, and returns it in lower case, because PostgreSQL returns a UUID in lower case.
std::string checked_id(const std::string& id) {
  if (id.empty()) return id;
  auto uuid = parse_uuid(id);
  if (!uuid) refuse_message("OutgoingMessage::id is not a UUID");
  return *std::move(uuid);
}

std::string headers_text(const std::map<std::string, std::string>& headers) {
  if (headers.empty()) return {};
  std::string text = "{";
  for (const auto& [name, value] : headers) {
    check_text("headers", name);
    check_text("headers", value);
    if (text.size() > 1) text += ',';
    append_json_string(text, name);
    text += ':';
    append_json_string(text, value);
  }
  text += '}';
  if (text.size() > longest_headers) {
    refuse_message(fmt::format("OutgoingMessage::headers have {} bytes as JSON; at most {} are allowed", text.size(),
                               longest_headers));
  }
  return text;
}

/// Returns none if the headers break the limits.
std::optional<std::string> valid_headers_text(const std::map<std::string, std::string>& headers) {
  try {
    return headers_text(headers);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

OutboxRow row_of(const OutgoingMessage& message) {
  check_text("topic", message.topic, 1);
  check_text("key", message.key, 0);
  check_text("type", message.type, 0);
  if (message.payload.size() > longest_payload) {
    refuse_message(fmt::format("OutgoingMessage::payload has {} bytes; at most {} are allowed", message.payload.size(),
                               longest_payload));
  }
  return {.id = checked_id(message.id),
          .topic = message.topic,
          .key = message.key,
          .type = message.type,
          .payload = message.payload,
          .headers = headers_text(message.headers)};
}

void add_handler_headers(const OutgoingMessage& message, OutboxRow& row) {
  const RunningHandler* const handler = RunningHandler::current();
  if (handler == nullptr) return;
  std::optional<std::string> text;
  if (handler->has_listeners()) {
    OutgoingMessage with_id = message;
    with_id.id = row.id;
    text = valid_headers_text(handler->with_changes(with_id, message.headers));
  }
  if (!text && handler->forwards()) text = valid_headers_text(handler->with_context(message.headers));
  if (text) row.headers = *std::move(text);
}

OutgoingMessage message_of(OutboxRow&& row) {
  OutgoingMessage message{.topic = std::move(row.topic),
                          .key = std::move(row.key),
                          .type = std::move(row.type),
                          .payload = std::move(row.payload),
                          .headers = {},
                          .id = std::move(row.id)};
  if (row.headers.empty()) return message;
  JsonValue json = parse_json(row.headers);
  if (json.kind != JsonValue::Kind::object) {
    throw JsonError("headers is not a JSON object", ErrorCode::unreadable);
  }
  for (std::size_t i = 0; i < json.items.size(); ++i) {
    JsonValue& value = json.items[i];
    message.headers.emplace(std::move(json.names[i]),
                            value.kind == JsonValue::Kind::string ? std::move(value.text) : to_json_text(value));
  }
  return message;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
