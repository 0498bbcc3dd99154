#include "message/content_hash.hpp"

#include <openssl/evp.h>

#include <stdexcept>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

ContentHash::ContentHash(std::string_view content) {
  if (content.empty()) return;
  unsigned size = 0;
  auto* out = reinterpret_cast<unsigned char*>(bytes_.data());
  if (EVP_Digest(content.data(), content.size(), out, &size, EVP_sha256(), nullptr) != 1 || size != bytes_.size()) {
    throw std::runtime_error("OpenSSL cannot compute a SHA-256");
  }
  size_ = size;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
