#include "base/utc_time.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <system_error>

#include <fmt/format.h>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

/// Reads numbers and the characters between them. If one is missing, `is_valid_to_the_end` returns false.
class TimeReader {
 public:
  explicit TimeReader(std::string_view text) : text_(text) {}

  int number(std::size_t digits) {
    int value = 0;
    const char* const end = text_.data() + std::min(digits, text_.size());
    const auto [stop, error] = std::from_chars(text_.data(), end, value);
    valid_ = valid_ && digits <= text_.size() && error == std::errc() && stop == end && value >= 0;
    text_.remove_prefix(std::min(digits, text_.size()));
    return value;
  }

  void character(char expected) {
    valid_ = valid_ && text_.starts_with(expected);
    text_.remove_prefix(text_.empty() ? 0 : 1);
  }

  /// The microseconds of a fraction of up to six digits.
  int fraction() {
    if (text_.empty()) return 0;
    character('.');
    const std::size_t digits = std::min<std::size_t>(text_.size(), 6);
    int value = number(digits);
    for (std::size_t i = digits; i < 6; ++i) value *= 10;
    return value;
  }

  bool is_valid_to_the_end() const { return valid_ && text_.empty(); }

 private:
  std::string_view text_;
  bool valid_ = true;
};

}  // namespace

std::optional<DatabaseTime> parse_utc(std::string_view text) {
  using namespace std::chrono;
  TimeReader reader(text);
  const int y = reader.number(4);
  reader.character('-');
  const int m = reader.number(2);
  reader.character('-');
  const int d = reader.number(2);
  reader.character(' ');
  const hours h(reader.number(2));
  reader.character(':');
  const minutes min(reader.number(2));
  reader.character(':');
  const seconds s(reader.number(2));
  const microseconds fraction(reader.fraction());
  const year_month_day date{year(y), month(static_cast<unsigned>(m)), day(static_cast<unsigned>(d))};
  if (!reader.is_valid_to_the_end() || !date.ok() || h >= days(1) || min >= hours(1) || s >= minutes(1)) {
    return std::nullopt;
  }
  return sys_days(date) + h + min + s + fraction;
}

std::string utc_text(DatabaseTime time) {
  using namespace std::chrono;
  const auto day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:06}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count(), clock.subseconds().count());
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
