#include "cli/sql/bind.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "console/usage_error.hpp"

namespace txinbox::cli {
namespace {

/// A decimal number as its digits, without zeros around them, and the power of ten of the last one.
struct Decimal {
  bool negative = false;
  std::string digits;  // empty for zero
  long long exponent = 0;

  bool operator==(const Decimal& other) const {
    if (digits.empty() || other.digits.empty()) return digits == other.digits;
    return negative == other.negative && digits == other.digits && exponent == other.exponent;
  }
};

/// None where the exponent is too large to count. The text is a number of JSON, or of `std::to_chars`.
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

/// Whether the double, as it is written with the fewest digits, is this number: 0.1 is, 12345678901234567.89 is not.
bool holds(double value, std::string_view text) {
  std::array<char, 32> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  if (error != std::errc()) return false;
  const auto written = decimal_of({buffer.data(), static_cast<std::size_t>(end - buffer.data())});
  return written && written == decimal_of(text);
}

BoundValue bound_number(const std::string& text, Database database) {
  if (database == Database::mysql) {
    // Sent without quotes, so that it compares and adds as an integer.
    unsigned long long value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size()) return value;
  }
  if (database == Database::sqlite3 && text.find_first_of(".eE") != std::string::npos) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() && std::isfinite(value) && holds(value, text)) {
      return value;
    }
  }
  return text;
}

BoundValue bound_string(const std::string& text, const Dialect& dialect) {
  if (text.find('\0') != std::string::npos) {
    if (dialect.database == Database::postgresql) throw LineError("PostgreSQL has no text with NUL in it");
    // The client then leaves NUL as it is, and SOCI cuts the statement there.
    if (dialect.database == Database::mysql && !dialect.backslash_escapes) {
      throw LineError("text with NUL in it cannot be sent while sql_mode has NO_BACKSLASH_ESCAPES");
    }
  }
  return text;
}

}  // namespace

BoundValue to_bound(const JsonValue& value, const Dialect& dialect) {
  switch (value.kind) {
    case JsonValue::Kind::null:
      return std::monostate{};
    case JsonValue::Kind::boolean:
      if (dialect.database == Database::postgresql) return std::string(value.boolean ? "true" : "false");
      return value.boolean ? 1LL : 0LL;
    case JsonValue::Kind::integer:
      return value.integer;
    case JsonValue::Kind::number:
      return bound_number(value.text, dialect.database);
    case JsonValue::Kind::string:
      return bound_string(value.text, dialect);
    case JsonValue::Kind::array:
    case JsonValue::Kind::object:
      break;
  }
  return to_json_text(value);
}

Binder::Binder(const Script& script, const std::vector<std::string>& options) {
  for (const auto& name : script.names) sources_.push_back({name, std::nullopt});
  for (const auto& option : options) {
    const auto equals = option.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw UsageError("--bind is NAME=POINTER, such as --bind user=/customer/id; NAME= alone is the whole line");
    }
    const std::string name = option.substr(0, equals);
    const auto source = std::find_if(sources_.begin(), sources_.end(), [&](const auto& s) { return s.name == name; });
    if (source == sources_.end()) {
      throw UsageError(fmt::format("--bind {}=…: the SQL has no placeholder :{}", name, name));
    }
    if (source->pointer) throw UsageError(fmt::format("--bind {}=… is given twice", name));
    source->pointer.emplace(std::string_view(option).substr(equals + 1));
  }
}

Values Binder::bind(const JsonValue& root, std::string_view line, const Dialect& dialect) const {
  Values values;
  values.reserve(sources_.size());
  for (const auto& source : sources_) {
    if (source.pointer && source.pointer->is_whole()) {
      values.emplace_back(std::string(line));
      continue;
    }
    const JsonValue* value = source.pointer ? source.pointer->find(root) : root.find(source.name);
    if (value == nullptr) {
      throw LineError(source.pointer
                          ? fmt::format(":{}: there is no {}", source.name, source.pointer->text())
                          : fmt::format(":{}: there is no such member (a JSON null gives NULL)", source.name));
    }
    try {
      values.push_back(to_bound(*value, dialect));
    } catch (const LineError& error) {
      throw LineError(fmt::format(":{}: {}", source.name, error.what()));
    }
  }
  return values;
}

}  // namespace txinbox::cli
