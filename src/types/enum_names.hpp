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

/// Whether the enum has an enumerator of this value. The compilers print an enumerator as `Enum::name` and any other
/// value as `(Enum)12`.
template <auto value>
consteval bool is_enumerator() {
  const std::string_view text = __PRETTY_FUNCTION__;
  const char first = text[text.find_last_of(":) =") + 1];
  return first < '0' || first > '9';
}

/// The names of an enum's values, in order. It compiles only if each value has a name, and if `last` is the last one.
template <class Enum, Enum last>
class EnumNames {
  static_assert(is_enumerator<last>() && !is_enumerator<static_cast<Enum>(static_cast<std::size_t>(last) + 1)>(),
                "name the new last value and add its text");

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
