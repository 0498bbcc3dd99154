#include <txinbox/error.hpp>
#include <txinbox/json.hpp>

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

JsonTemplate::JsonTemplate(std::string_view text) : template_(std::make_shared<const detail::KeyTemplate>(text)) {}

std::string JsonTemplate::operator()(std::string_view json) const { return template_->key(detail::parse_json(json)); }

std::string JsonTemplate::operator()(const JsonDocument& json) const { return template_->key(*json.root_); }

namespace {

std::shared_ptr<const detail::JsonFields> fields_at(std::span<const std::string_view> pointers) {
  if (pointers.empty()) {
    throw Error(ErrorCode::invalid_argument, "a JsonContent without JSON Pointers would compare nothing");
  }
  auto fields = std::make_shared<detail::JsonFields>();
  for (const std::string_view pointer : pointers) fields->add(detail::JsonPointer(pointer));
  return fields;
}

}  // namespace

JsonContent::JsonContent(std::span<const std::string_view> pointers) : fields_(fields_at(pointers)) {}

JsonContent::JsonContent(std::initializer_list<std::string_view> pointers)
    : JsonContent(std::span(pointers.begin(), pointers.size())) {}

std::string JsonContent::operator()(std::string_view json) const { return fields_->content(detail::parse_json(json)); }

std::string JsonContent::operator()(const JsonDocument& json) const { return fields_->content(*json.root_); }

TXINBOX_NAMESPACE_END
}  // namespace txinbox
