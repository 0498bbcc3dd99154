#include "base/uuid.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/ascii.hpp"
#include "base/hex.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

std::string format_uuid(std::string bytes, unsigned version) {
  const auto with = [&](std::size_t at, unsigned kept, unsigned set) {
    bytes[at] = static_cast<char>((static_cast<unsigned char>(bytes[at]) & kept) | set);
  };
  with(6, 0x0FU, version << 4U);
  with(8, 0x3FU, 0x80U);
  const std::string hex = to_hex(bytes);
  return fmt::format("{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4), hex.substr(16, 4),
                     hex.substr(20, 12));
}

std::optional<std::string> parse_uuid(std::string text) {
  constexpr std::string_view form = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  const auto fits = [](char c, char wanted) {
    if (wanted == '-') return c == '-';
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  };
  text = lower_case(text);
  if (!std::ranges::equal(text, form, fits)) return std::nullopt;
  return text;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
