#include <txinbox/sample.hpp>

#include <zlib.h>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace sample {

unsigned long checksum(const Message& message) {
  std::string key = message.business_key;
  return crc32(0, reinterpret_cast<const Bytef*>(key.data()), static_cast<uInt>(key.size()));
}

}  // namespace sample
TXINBOX_NAMESPACE_END
}  // namespace txinbox
