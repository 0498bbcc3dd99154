#pragma once

#include <string>
#include <string_view>

namespace txinbox::component {

/// Returns a letter of ASCII in lower case, and any other byte as it is. Unlike std::tolower, it does not depend on the
/// locale.
constexpr char lower_case_of(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// The same for each byte of a text.
inline std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = lower_case_of(c);
  return result;
}

}  // namespace txinbox::component
