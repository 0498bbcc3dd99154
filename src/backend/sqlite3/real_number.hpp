#pragma once

#include <optional>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// The number as a double, if the double's shortest form is that number: 0.1 is, 12345678901234567.89 is not. None for
/// an integer, too, which a double would make a real.
///
/// Limits: the text is a number of JSON.
std::optional<double> sqlite3_real(std::string_view number);

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
