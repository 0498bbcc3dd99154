#pragma once

#include <string>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The text with spaces instead of line ends, and none around it: what a database says can have several lines.
std::string one_line(std::string_view text);

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
