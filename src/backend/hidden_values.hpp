#pragma once

#include <string>

#include <txinbox/version.hpp>

#include "base/url.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// `text`, an error of a client library or a server, with [name] in place of each value of these parameters of a
/// database URL, and of each part of a value that the library takes apart.
std::string without_values(std::string text, const detail::UrlParameters& parameters);

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
