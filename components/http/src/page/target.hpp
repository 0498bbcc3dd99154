#pragma once

#include <cstddef>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {

/// The path and the parameters of a request's target, as "/failed?consumer=svc".
struct Target {
  std::string path;
  std::map<std::string, std::string, std::less<>> parameters = {};  ///< Of several with one name, the first one.

  /// The value of a parameter; empty if it is missing.
  const std::string& operator[](std::string_view name) const;
};

inline constexpr std::size_t default_limit = 100;
inline constexpr std::size_t most_limit = 1000;

/// How many rows a list shows: the parameter `limit`, or `default_limit`.
///
/// Errors: `Error` invalid_argument for another text than 1 to `most_limit`.
std::size_t limit_of(const Target&);

/// Errors: `Error` invalid_argument if an escape such as %4 is not complete.
Target read_target(std::string_view target);

/// Escapes all bytes but letters, digits and -._~ (RFC 3986).
std::string percent_encoded(std::string_view bytes);

/// The path with those parameters that are not empty.
std::string link_to(std::string_view path,
                    std::initializer_list<std::pair<std::string_view, std::string_view>> parameters);

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
