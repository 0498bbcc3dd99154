#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// What a code means, in a few words; empty for a code that is not in the table.
template <class Code, std::size_t N>
constexpr std::string_view meaning_in(const std::array<std::pair<Code, std::string_view>, N>& meanings, Code code) {
  const auto* found = std::ranges::find(meanings, code, [](const auto& each) { return each.first; });
  return found == meanings.end() ? std::string_view() : found->second;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
