#include "backend/sqlite3/real_number.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

/// A decimal number: its digits without zeros at the beginning and the end, and the power of ten of the last digit.
struct Decimal {
  bool negative = false;
  std::string digits;  // empty for zero
  long long exponent = 0;

  bool operator==(const Decimal& other) const {
    if (digits.empty() || other.digits.empty()) return digits == other.digits;
    return negative == other.negative && digits == other.digits && exponent == other.exponent;
  }
};

/// Returns none if the exponent is too large to compute with. The text is a number from JSON or from `std::to_chars`.
std::optional<Decimal> decimal_of(std::string_view text) {
  Decimal number;
  if (text.starts_with('-')) {
    number.negative = true;
    text.remove_prefix(1);
  }
  const auto e = std::min(text.find_first_of("eE"), text.size());
  if (e < text.size()) {
    std::string_view exponent = text.substr(e + 1);
    if (exponent.starts_with('+')) exponent.remove_prefix(1);
    const auto [end, error] = std::from_chars(exponent.data(), exponent.data() + exponent.size(), number.exponent);
    constexpr long long most = 1'000'000;
    if (error != std::errc() || number.exponent > most || number.exponent < -most) return std::nullopt;
  }
  bool behind_point = false;
  for (const char c : text.substr(0, e)) {
    if (c == '.') {
      behind_point = true;
      continue;
    }
    if (c != '0' || !number.digits.empty()) number.digits += c;
    if (behind_point) --number.exponent;
  }
  while (number.digits.ends_with('0')) {
    number.digits.pop_back();
    ++number.exponent;
  }
  return number;
}

/// Whether the double, written with the fewest digits, is this number. This is true for 0.1, and false for
/// 12345678901234567.89.
bool holds(double value, std::string_view text) {
  std::array<char, 32> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  if (error != std::errc()) return false;
  const auto written = decimal_of({buffer.data(), static_cast<std::size_t>(end - buffer.data())});
  return written && written == decimal_of(text);
}

}  // namespace

std::optional<double> sqlite3_real(std::string_view number) {
  if (number.find_first_of(".eE") == std::string_view::npos) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  const bool is_whole = error == std::errc() && end == number.data() + number.size();
  return is_whole && std::isfinite(value) && holds(value, number) ? std::optional(value) : std::nullopt;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
