#include <txinbox/json_template.hpp>

#include "message/json/json_value.hpp"
#include "message/json/key_template.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

JsonTemplate::JsonTemplate(std::string_view text) : template_(std::make_shared<const detail::KeyTemplate>(text)) {}

std::string JsonTemplate::operator()(std::string_view json) const { return template_->key(detail::parse_json(json)); }

std::string JsonTemplate::operator()(const JsonDocument& json) const { return template_->key(*json.root_); }

TXINBOX_NAMESPACE_END
}  // namespace txinbox
