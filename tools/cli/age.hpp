#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include <txinbox/connection_ref.hpp>

namespace txinbox::cli {

/// A duration or an age in its greatest whole unit: 40s, 3m, 2h, 5d. A negative duration is 0s.
std::string human_age(std::chrono::seconds age);

/// The duration that the value of an option says.
///
/// Errors: `UsageError` that names the option, if the value is no duration, or less than `least`: 1 s or 1 ms.
std::chrono::milliseconds duration_of(std::string_view option, const std::string& value,
                                      std::chrono::milliseconds least = std::chrono::seconds(1));

/// A time in UTC as "2026-01-31 23:59:59.123456", for JSON. Empty if there is none.
std::string time_text(const std::optional<DatabaseTime>& time);

/// A time in UTC without the fraction of its second, for tables. "-" if there is none.
std::string time_to_the_second(const std::optional<DatabaseTime>& time);

}  // namespace txinbox::cli
