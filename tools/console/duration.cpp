#include "console/duration.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <system_error>
#include <utility>

namespace txinbox::cli {

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  using namespace std::string_view_literals;
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 5> units{
      {{"ms"sv, 1}, {"s"sv, 1'000}, {"m"sv, 60'000}, {"h"sv, 3'600'000}, {"d"sv, 86'400'000}}};
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;  // from_chars would accept a minus sign
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  for (const auto& [name, length] : units) {
    if (text != name) continue;
    // A time point of a clock, in nanoseconds, ends after 292 years.
    constexpr std::int64_t longest = std::int64_t{100'000} * 86'400'000;
    if (number > longest / length) return std::nullopt;
    return std::chrono::milliseconds(number * length);
  }
  return std::nullopt;
}

std::string format_duration(std::chrono::milliseconds time) {
  struct Unit {
    const char* name;
    std::int64_t length;
  };
  constexpr std::array<Unit, 5> units{{{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}}};
  std::string text;
  std::int64_t rest = time.count();
  const auto* greatest = std::find_if(units.begin(), units.end() - 1, [&](const Unit& u) { return rest >= u.length; });
  for (const auto* unit = greatest; unit != units.end() && unit - greatest < 2; ++unit) {
    if (const auto count = rest / unit->length; count > 0 || text.empty()) text += std::to_string(count) + unit->name;
    rest %= unit->length;
  }
  return text;
}

}  // namespace txinbox::cli
