#pragma once

#include <string>

#include <txinbox/version.hpp>

#include "base/url.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// Hides the values of a URL's parameters in `text`, which is an error text of a client library or a server. [name]
/// replaces each value, and each part of a value that the client library parses.
std::string without_values(std::string text, const detail::UrlParameters& parameters);

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
