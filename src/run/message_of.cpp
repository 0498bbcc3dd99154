#include <txinbox/message_of.hpp>

#include <cstddef>
#include <utility>

#include <txinbox/error.hpp>
#include <txinbox/json_template.hpp>

#include "base/hex.hpp"
#include "base/utf8.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

Message message_with(std::string key, const Incoming& incoming) {
  return {.business_key = std::move(key),
          .message_id = traceable_id(std::string(incoming.id)),
          .payload = std::string(incoming.body)};
}

std::string required(const std::optional<std::string_view>& value, const std::string& what, KeyBytes bytes) {
  if (!value) throw Error(ErrorCode::invalid_key, "the message has no " + what);
  if (value->empty()) throw Error(ErrorCode::invalid_key, "the message's " + what + " is empty");
  return bytes == KeyBytes::hex ? detail::to_hex(*value) : std::string(*value);
}

/// The value of the only header of this name. Which of two values identifies the message is not known, so it is none.
std::optional<std::string_view> only_header(const Incoming& incoming, const std::string& name) {
  const auto first = incoming.header(name);
  for (const IncomingHeader& each : incoming.headers) {
    if (each.name == name && each.value != *first) {
      throw Error(ErrorCode::invalid_key, "the message has several headers " + name + " with different values");
    }
  }
  return first;
}

}  // namespace

MessageOf key_from_record(KeyBytes bytes) {
  return
      [bytes](const Incoming& incoming) { return message_with(required(incoming.key, "record key", bytes), incoming); };
}

MessageOf key_from_header(std::string name, KeyBytes bytes) {
  if (name.empty()) throw Error(ErrorCode::invalid_argument, "the name of the header that holds the key is empty");
  return [name = std::move(name), bytes](const Incoming& incoming) {
    return message_with(required(only_header(incoming, name), "header " + name, bytes), incoming);
  };
}

MessageOf key_from_json(std::string_view text) {
  return [key = JsonTemplate(text)](const Incoming& incoming) {
    if (!incoming.has_body) throw Error(ErrorCode::invalid_key, "the message has no body that could hold its key");
    return message_with(key(incoming.body), incoming);
  };
}

std::string traceable_id(std::string id) {
  constexpr std::size_t longest = 255;
  const bool is_text = id.find('\0') == std::string::npos && detail::find_invalid_utf8(id) == std::string::npos;
  if (!is_text) id = "0x" + detail::to_hex(id);
  if (id.size() <= longest) return id;
  std::size_t end = longest;
  const auto continues = [&](std::size_t at) { return (static_cast<unsigned char>(id[at]) & 0xC0U) == 0x80U; };
  while (continues(end)) --end;
  id.resize(end);
  return id;
}

MessageOf prefixed_message(std::string prefix, MessageOf message_of) {
  return [prefix = std::move(prefix), message_of = std::move(message_of)](const Incoming& incoming) {
    Message message = message_of(incoming);
    message.business_key.insert(0, prefix);
    return message;
  };
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
