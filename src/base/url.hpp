#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/private_api.hpp"

namespace txinbox {
TXINBOX_PRIVATE_API_BEGIN
namespace detail {

using UrlParameters = std::vector<std::pair<std::string, std::string>>;  ///< Name and value.

/// A database URL, split and percent-decoded (RFC 3986). The scheme decides what the parts mean.
struct Url {
  std::string scheme;  ///< Lower case: "sqlite", "mysql", "postgresql", "soci", …
  std::string user;
  std::string password;
  std::string host;  ///< The host, without the brackets of an IPv6 address. Several hosts have commas between.
  std::string port;  ///< Digits, or empty. As many as there are hosts, unless all ports are empty.
  std::string path;  ///< After the host and its slash; without "//", all that follows the scheme.
  bool has_authority = false;  ///< Whether "//" follows the scheme.
  UrlParameters parameters;
};

/// The target that a database URL names. The name of a file may hold an '@', and no password.
enum class UrlKind { server, file };

/// The scheme in lower case.
///
/// Errors: `Error` invalid_argument for a text without one.
std::string url_scheme(std::string_view text);

/// Parses a database URL.
///
/// Errors: `Error` invalid_argument, whose text holds no part that may be a password.
Url parse_url(std::string_view text, UrlKind kind = UrlKind::server);

}  // namespace detail
TXINBOX_PRIVATE_API_END
}  // namespace txinbox
