#include <txinbox/message_of.hpp>

#include <cstddef>
#include <utility>

#include <txinbox/error.hpp>

#include "base/hex.hpp"
#include "base/text.hpp"
#include "message/json/json_value.hpp"
#include "message/json/key_template.hpp"
#include "run/delivery_key.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

Message message_with(std::string key, const Incoming& incoming) {
  return {.business_key = std::move(key),
          .message_id = traceable_id(std::string(incoming.id)),
          .payload = std::string(incoming.body)};
}

/// The JSON of the body.
///
/// Errors: `Error` unreadable if there is no body, or if it is not JSON.
detail::JsonValue json_of(const Incoming& incoming) {
  if (!incoming.has_body) throw Error(ErrorCode::unreadable, "the message has no body that could hold its key");
  return detail::parse_json(incoming.body);
}

}  // namespace

MessageOf key_from(std::string_view text) {
  detail::KeyTemplate key(text, "the text of the key", detail::KeyValues::delivery);
  return [key = std::move(key)](const Incoming& incoming) {
    const auto value = [&](const detail::KeyPart& part) { return detail::delivery_value(incoming, part); };
    const detail::JsonValue root = key.has_pointer() ? json_of(incoming) : detail::JsonValue();
    return message_with(key.key(root, value), incoming);
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

TXINBOX_NAMESPACE_END
}  // namespace txinbox
