#pragma once

#include <string>
#include <string_view>

#include "base/private_api.hpp"
#include "base/url.hpp"

namespace txinbox {
TXINBOX_PRIVATE_API_BEGIN
namespace backend {

/// Adds name='value' to a connection string. SOCI's MySQL backend and libpq use the same syntax: a backslash comes
/// before each quote and each backslash in the value.
inline void append_parameter(std::string& string, std::string_view name, std::string_view value) {
  if (!string.empty()) string += ' ';
  string.append(name).append("='");
  for (const char c : value) {
    if (c == '\'' || c == '\\') string += '\\';
    string += c;
  }
  string += '\'';
}

/// Hides the values of a URL's parameters in `text`, which is an error text of a client library or a server. [name]
/// replaces each value, and each part of a value that the client library parses.
std::string without_values(std::string text, const detail::UrlParameters& parameters);

}  // namespace backend
TXINBOX_PRIVATE_API_END
}  // namespace txinbox
