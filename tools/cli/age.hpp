#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace txinbox::cli {

/// A duration or an age in its greatest whole unit: 40s, 3m, 2h, 5d. A negative duration is 0s.
std::string human_age(std::chrono::seconds age);

/// The time from one "2026-01-31 23:59:59.123456" to another, both in UTC. Nothing if one of the texts is not such a
/// time.
std::optional<std::chrono::seconds> time_between(std::string_view from, std::string_view to);

}  // namespace txinbox::cli
