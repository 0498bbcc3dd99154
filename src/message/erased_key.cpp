#include "message/erased_key.hpp"

#include "base/hex.hpp"
#include "message/content_hash.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

std::string erased_key(std::string_view consumer, std::string_view business_key) {
  std::string content(consumer);
  content += '\0';  // neither of them can hold it
  content += business_key;
  std::string key(erased_key_prefix);
  append_hex(key, ContentHash(content).bytes());
  return key;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
