#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Formats 16 bytes as a UUID of this version (RFC 9562), in lower case. It overwrites the bits of version and variant.
std::string format_uuid(std::string bytes, unsigned version);

/// Returns the UUID in lower case; none if the text is no UUID.
std::optional<std::string> parse_uuid(std::string text);

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
