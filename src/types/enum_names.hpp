#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The names of an enum's values, in order. It compiles only if each value up to `last` has a name.
template <class Enum, Enum last>
class EnumNames {
 public:
  template <class... Names>
  requires(sizeof...(Names) == static_cast<std::size_t>(last) + 1) consteval explicit EnumNames(const Names&... names)
      : names_{names...} {}

  constexpr std::string_view operator[](Enum value) const noexcept {
    const auto i = static_cast<std::size_t>(value);
    return i < names_.size() ? names_[i] : "unknown";
  }

  constexpr std::optional<Enum> find(std::string_view name) const noexcept {
    const auto at = std::ranges::find(names_, name);
    if (at == names_.end()) return std::nullopt;
    return static_cast<Enum>(at - names_.begin());
  }

 private:
  std::array<std::string_view, static_cast<std::size_t>(last) + 1> names_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
