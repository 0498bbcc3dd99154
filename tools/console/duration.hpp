#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace txinbox::cli {

/// A time with its unit, such as 500ms, 30s, 10m, 2h or 7d. Nothing for any other text, and for a time that is longer
/// than 100,000 days. The number is decimal, even if it begins with zeros. It has no sign and no fraction.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

/// A time in its two greatest units, such as 8d3h, 1m30s or 500ms. Smaller units are left out.
std::string format_duration(std::chrono::milliseconds time);

}  // namespace txinbox::cli
