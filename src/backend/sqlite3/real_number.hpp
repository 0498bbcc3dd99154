#pragma once

#include <optional>
#include <string_view>

#include "base/private_api.hpp"

namespace txinbox {
TXINBOX_PRIVATE_API_BEGIN
namespace backend {

/// Returns the number as a double, if the shortest form of the double is that number. This is so for 0.1, and not for
/// 12345678901234567.89. Returns none for an integer, because a double would turn it into a real number.
///
/// Limits: the text is a number of JSON.
std::optional<double> sqlite3_real(std::string_view number);

}  // namespace backend
TXINBOX_PRIVATE_API_END
}  // namespace txinbox
