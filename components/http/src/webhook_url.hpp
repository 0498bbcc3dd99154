#pragma once

#include <string>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {

/// The target of a request for the URL: path and query, for example "/events?source=orders".
///
/// Errors: `Error` invalid_argument if this is not a URL of http or https, or if it contains a user or a password. The
///         text does not contain the URL.
std::string target_of(std::string_view url);

/// The server of a URL that `target_of` accepts, for example "https://localhost:8443". The rest of a URL can be a
/// secret, so no error text contains it.
std::string server_of(std::string_view url);

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
