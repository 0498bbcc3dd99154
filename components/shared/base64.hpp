#pragma once

#include <string>
#include <string_view>

#include <openssl/evp.h>

namespace txinbox::component {

/// Bytes in base64, padded (RFC 4648, section 4).
inline std::string base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // with a NUL at the end
  const int length =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

}  // namespace txinbox::component
