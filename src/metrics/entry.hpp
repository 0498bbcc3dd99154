#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

#include <txinbox/version.hpp>

#include "base/text.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Returns the entry of `name`. If there are already `most` names, or if `name` is not valid UTF-8, returns the entry
/// of "other". Text that is not UTF-8 would make the whole page unreadable. It allocates memory only for a new entry.
template <typename Map>
auto& entry_of(Map& map, std::string_view name, std::size_t most = std::numeric_limits<std::size_t>::max()) {
  if (const auto found = map.find(name); found != map.end()) return found->second;
  const bool is_other = map.size() >= most || find_invalid_utf8(name) != std::string_view::npos;
  return map[is_other ? std::string("other") : std::string(name)];
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
