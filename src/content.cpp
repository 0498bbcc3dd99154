#include <txinbox/content.hpp>

namespace txinbox::inline TXINBOX_ABI {

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

}  // namespace txinbox::inline TXINBOX_ABI
