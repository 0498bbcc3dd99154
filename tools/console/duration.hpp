#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace txinbox::cli {

/// A time with its unit, as 500ms, 30s, 10m, 2h or 7d; none for what is no such text, or too long to count
/// in milliseconds. The number is decimal, also with zeros before it, and has neither sign nor fraction.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

/// A time in its two greatest units, as 8d3h, 1m30s or 500ms; what is smaller is left out.
std::string format_duration(std::chrono::milliseconds time);

}  // namespace txinbox::cli
