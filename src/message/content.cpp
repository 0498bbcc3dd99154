#include <txinbox/message.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

std::string content_of(std::span<const std::string_view> fields) {
  std::string content;
  for (const std::string_view field : fields) {
    content += std::to_string(field.size());
    content += ':';
    content += field;
    content += ',';
  }
  return content;
}

std::string content_of(std::initializer_list<std::string_view> fields) {
  return content_of(std::span(fields.begin(), fields.size()));
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
