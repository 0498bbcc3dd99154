#include "cli/age.hpp"

#include <algorithm>
#include <cstdint>
#include <ctime>

#include <fmt/format.h>
#include <time.h>

namespace txinbox::cli {
namespace {

std::optional<std::chrono::seconds> since_1970(std::string_view text) {
  std::tm time{};
  if (::strptime(std::string(text).c_str(), "%Y-%m-%d %H:%M:%S", &time) == nullptr) return std::nullopt;
  return std::chrono::seconds(::timegm(&time));
}

}  // namespace

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

std::optional<std::chrono::seconds> time_between(std::string_view from, std::string_view to) {
  const auto begin = since_1970(from);
  const auto end = since_1970(to);
  if (!begin || !end) return std::nullopt;
  return *end - *begin;
}

}  // namespace txinbox::cli
