#include <txinbox/json_document.hpp>

#include "message/json/json_pointer.hpp"
#include "message/json/json_value.hpp"
#include "message/json/key_template.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

JsonDocument::JsonDocument(std::string_view json)
    : root_(std::make_shared<const detail::JsonValue>(detail::parse_json(json))) {}

std::optional<std::string> JsonDocument::text(std::string_view pointer) const {
  return detail::text_or_none(*root_, detail::JsonPointer(pointer), "message");
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
