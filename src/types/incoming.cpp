#include <txinbox/incoming.hpp>

#include <algorithm>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

std::optional<std::string_view> Incoming::header(std::string_view name) const noexcept {
  const auto found = std::ranges::find(headers, name, &IncomingHeader::name);
  if (found == headers.end()) return std::nullopt;
  return found->value;
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
