#pragma once

#include <string>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Returns the text with spaces instead of line ends, and with no spaces around it. An error text of a database can
/// have several lines.
std::string one_line(std::string_view text);

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
