#pragma once

#include <string>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {

/// The length and the bytes: texts behind each other cannot be taken for other ones.
inline void append_part(std::string& to, std::string_view part) {
  to.append(std::to_string(part.size())).append(":").append(part);
}

/// SHA-256 in 64 hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
