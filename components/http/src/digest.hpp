#pragma once

#include <string>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {

/// Appends the length and the bytes. So different lists of parts never give the same text.
inline void append_part(std::string& to, std::string_view part) {
  to.append(std::to_string(part.size())).append(":").append(part);
}

/// The SHA-256 of the bytes, in 64 hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
