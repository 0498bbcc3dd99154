#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <txinbox/connection_ref.hpp>

#include "base/private_api.hpp"

namespace txinbox {
TXINBOX_PRIVATE_API_BEGIN
namespace detail {

/// Reads a time in UTC such as "2026-01-31 23:59:59.123456". The fraction may be shorter or absent. Returns none for
/// another text.
std::optional<DatabaseTime> parse_utc(std::string_view text);

/// Writes a time in this form, with six digits of the fraction.
std::string utc_text(DatabaseTime);

}  // namespace detail
TXINBOX_PRIVATE_API_END
}  // namespace txinbox
