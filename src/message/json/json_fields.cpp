#include "message/json/json_fields.hpp"

#include <txinbox/message.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

std::string JsonFields::content(const JsonValue& root) const {
  std::vector<std::string> texts;
  texts.reserve(pointers_.size());
  for (const JsonPointer& pointer : pointers_) {
    const JsonValue* value = pointer.find(root);
    // A missing field gives an empty text. No value does, because no JSON text is empty.
    texts.push_back(value == nullptr ? std::string() : to_json_text(*value));
  }
  const std::vector<std::string_view> fields(texts.begin(), texts.end());
  return content_of(fields);
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
