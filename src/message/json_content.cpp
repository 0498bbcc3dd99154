#include <txinbox/error.hpp>
#include <txinbox/json_content.hpp>

#include "message/json/json_fields.hpp"
#include "message/json/json_value.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

std::shared_ptr<const detail::JsonFields> fields_at(std::span<const std::string_view> pointers) {
  if (pointers.empty()) {
    throw Error(ErrorCode::invalid_argument, "a JsonContent without JSON Pointers would compare nothing");
  }
  auto fields = std::make_shared<detail::JsonFields>();
  for (const std::string_view pointer : pointers) fields->add(pointer);
  return fields;
}

}  // namespace

JsonContent::JsonContent(std::span<const std::string_view> pointers) : fields_(fields_at(pointers)) {}

std::string JsonContent::operator()(std::string_view json) const { return fields_->content(detail::parse_json(json)); }

std::string JsonContent::operator()(const JsonDocument& json) const { return fields_->content(*json.root_); }

TXINBOX_NAMESPACE_END
}  // namespace txinbox
