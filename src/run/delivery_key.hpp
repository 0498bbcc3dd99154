#pragma once

#include <string>

#include <txinbox/source.hpp>

#include "base/private_api.hpp"
#include "message/json/key_template.hpp"

namespace txinbox {
TXINBOX_PRIVATE_API_BEGIN
namespace detail {

/// The record key or the header that the part names.
///
/// Errors: `Error` invalid_key that names it, if it is missing or empty, or if several headers have the name and
///         different values.
std::string delivery_value(const Incoming& incoming, const KeyPart& part);

}  // namespace detail
TXINBOX_PRIVATE_API_END
}  // namespace txinbox
