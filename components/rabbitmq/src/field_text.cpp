#include "field_text.hpp"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rabbitmq {
namespace {

template <typename... Arguments>
std::string chars_of(Arguments... value) {
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value...);
  return {text.data(), end.ptr};
}

/// The shortest text that identifies the value. A NaN has its bits in the text, because NaNs differ, too.
std::string text_of_float(double value) {
  constexpr int hexadecimal = 16;
  if (std::isnan(value)) return "nan(" + chars_of(std::bit_cast<std::uint64_t>(value), hexadecimal) + ")";
  return chars_of(value);
}

/// A float as the double of the same value. `static_cast` would change the bits of a signaling NaN.
double double_of(float value) {
  if (!std::isnan(value)) return value;
  constexpr unsigned moved = 29;  // the mantissas have 23 and 52 bits
  constexpr std::uint64_t exponent = 0x7FF0'0000'0000'0000;
  const std::uint64_t bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<double>((bits >> 31U) << 63U | exponent | (bits & 0x7F'FFFFU) << moved);
}

/// The decimal with all its digits, such as "12.50".
std::string text_of_decimal(const amqp_decimal_t& decimal) {
  std::string digits = std::to_string(decimal.value);
  const std::size_t decimals = decimal.decimals;
  if (decimals == 0) return digits;
  if (digits.size() <= decimals) digits.insert(0, decimals + 1 - digits.size(), '0');
  return digits.insert(digits.size() - decimals, 1, '.');
}

}  // namespace

std::optional<std::int64_t> number_of(const amqp_field_value_t& field) {
  const auto& value = field.value;
  switch (field.kind) {
    case AMQP_FIELD_KIND_I8:
      return value.i8;
    case AMQP_FIELD_KIND_U8:
      return value.u8;
    case AMQP_FIELD_KIND_I16:
      return value.i16;
    case AMQP_FIELD_KIND_U16:
      return value.u16;
    case AMQP_FIELD_KIND_I32:
      return value.i32;
    case AMQP_FIELD_KIND_U32:
      return value.u32;
    case AMQP_FIELD_KIND_I64:
      return value.i64;
    case AMQP_FIELD_KIND_U64:
    case AMQP_FIELD_KIND_TIMESTAMP:
      if (value.u64 > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
      return static_cast<std::int64_t>(value.u64);
    default:
      return std::nullopt;
  }
}

std::string text_of(const amqp_field_value_t& field) {
  switch (field.kind) {
    case AMQP_FIELD_KIND_BOOLEAN:
      return field.value.boolean != 0 ? "true" : "false";
    case AMQP_FIELD_KIND_F32:
      return text_of_float(double_of(field.value.f32));
    case AMQP_FIELD_KIND_F64:
      return text_of_float(field.value.f64);
    case AMQP_FIELD_KIND_DECIMAL:
      return text_of_decimal(field.value.decimal);
    case AMQP_FIELD_KIND_U64:
    case AMQP_FIELD_KIND_TIMESTAMP:
      return std::to_string(field.value.u64);
    default:
      break;
  }
  const auto number = number_of(field);
  return number ? std::to_string(*number) : std::string();
}

}  // namespace rabbitmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
