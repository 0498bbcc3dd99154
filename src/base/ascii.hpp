#pragma once

#include <string>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Returns the text with the letters of ASCII in lower case. Other bytes stay. Unlike std::tolower, it does not depend
/// on the locale.
inline std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
