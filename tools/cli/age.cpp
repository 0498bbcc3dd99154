#include "cli/age.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include "base/utc_time.hpp"
#include "console/duration.hpp"
#include "console/usage_error.hpp"

namespace txinbox::cli {

std::chrono::milliseconds duration_of(std::string_view option, const std::string& value,
                                      std::chrono::milliseconds least) {
  const auto duration = parse_duration(value);
  if (!duration || *duration < least) {
    throw UsageError(fmt::format("{} takes a time of at least {} with its unit, such as 30s, 10m, 12h or 7d", option,
                                 least >= std::chrono::seconds(1) ? "1s" : "1ms"));
  }
  return *duration;
}

std::string human_age(std::chrono::seconds age) {
  constexpr std::int64_t minute = 60;
  constexpr std::int64_t hour = 60 * minute;
  constexpr std::int64_t day = 24 * hour;
  const std::int64_t seconds = std::max<std::int64_t>(age.count(), 0);
  if (seconds < minute) return fmt::format("{}s", seconds);
  if (seconds < hour) return fmt::format("{}m", seconds / minute);
  if (seconds < day) return fmt::format("{}h", seconds / hour);
  return fmt::format("{}d", seconds / day);
}

std::string time_text(const std::optional<DatabaseTime>& time) { return time ? detail::utc_text(*time) : ""; }

std::string time_to_the_second(const std::optional<DatabaseTime>& time) {
  constexpr std::size_t length = std::string_view("2026-01-31 23:59:59").size();
  return time ? detail::utc_text(*time).substr(0, length) : "-";
}

}  // namespace txinbox::cli
