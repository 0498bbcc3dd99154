// The texts of header values that are no texts.

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "field_text.hpp"

namespace txinbox::test {
namespace {

amqp_field_value_t field(std::uint8_t kind) {
  amqp_field_value_t value{};
  value.kind = kind;
  return value;
}

std::string text_of_double(double number) {
  amqp_field_value_t value = field(AMQP_FIELD_KIND_F64);
  value.value.f64 = number;
  return rabbitmq::text_of(value);
}

std::string text_of_float(float number) {
  amqp_field_value_t value = field(AMQP_FIELD_KIND_F32);
  value.value.f32 = number;
  return rabbitmq::text_of(value);
}

std::string text_of_unsigned(std::uint64_t number, std::uint8_t kind = AMQP_FIELD_KIND_U64) {
  amqp_field_value_t value = field(kind);
  value.value.u64 = number;
  return rabbitmq::text_of(value);
}

std::string text_of_signed(std::int64_t number) {
  amqp_field_value_t value = field(AMQP_FIELD_KIND_I64);
  value.value.i64 = number;
  return rabbitmq::text_of(value);
}

std::string text_of_decimal(std::uint8_t decimals, std::uint32_t digits) {
  amqp_field_value_t value = field(AMQP_FIELD_KIND_DECIMAL);
  value.value.decimal = {.decimals = decimals, .value = digits};
  return rabbitmq::text_of(value);
}

TEST_CASE("RabbitMQ: numbers in headers have an exact text") {
  CHECK(text_of_double(0.0000001) == "1e-07");
  CHECK(text_of_double(0.0000002) == "2e-07");
  CHECK(text_of_double(0.1) == "0.1");
  CHECK(text_of_double(-2.5) == "-2.5");
  CHECK(text_of_double(3) == "3");
  CHECK(text_of_double(std::numeric_limits<double>::infinity()) == "inf");
  CHECK(text_of_double(-std::numeric_limits<double>::infinity()) == "-inf");
  CHECK(text_of_float(0.5F) == "0.5");
  CHECK(text_of_float(0.1F) == "0.10000000149011612");
  CHECK(text_of_float(std::numeric_limits<float>::infinity()) == "inf");
  CHECK(text_of_signed(-7) == "-7");
  CHECK(text_of_signed(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775808");
  CHECK(text_of_unsigned(std::numeric_limits<std::uint64_t>::max()) == "18446744073709551615");
  CHECK(text_of_unsigned(1'700'000'000, AMQP_FIELD_KIND_TIMESTAMP) == "1700000000");
  CHECK(text_of_unsigned(std::numeric_limits<std::uint64_t>::max(), AMQP_FIELD_KIND_TIMESTAMP) ==
        "18446744073709551615");
  CHECK(text_of_decimal(0, 12) == "12");
  CHECK(text_of_decimal(2, 1250) == "12.50");
  CHECK(text_of_decimal(3, 7) == "0.007");
  CHECK(text_of_decimal(255, 1).size() == 257);
  amqp_field_value_t small = field(AMQP_FIELD_KIND_I8);
  small.value.i8 = -128;
  CHECK(rabbitmq::text_of(small) == "-128");
  small = field(AMQP_FIELD_KIND_U8);
  small.value.u8 = 255;
  CHECK(rabbitmq::text_of(small) == "255");
  small = field(AMQP_FIELD_KIND_I16);
  small.value.i16 = -32'768;
  CHECK(rabbitmq::text_of(small) == "-32768");
  small = field(AMQP_FIELD_KIND_U16);
  small.value.u16 = 65'535;
  CHECK(rabbitmq::text_of(small) == "65535");
  small = field(AMQP_FIELD_KIND_I32);
  small.value.i32 = std::numeric_limits<std::int32_t>::min();
  CHECK(rabbitmq::text_of(small) == "-2147483648");
  small = field(AMQP_FIELD_KIND_U32);
  small.value.u32 = std::numeric_limits<std::uint32_t>::max();
  CHECK(rabbitmq::text_of(small) == "4294967295");
  CHECK(rabbitmq::text_of(field(AMQP_FIELD_KIND_VOID)).empty());
  CHECK(rabbitmq::text_of(field(AMQP_FIELD_KIND_TABLE)).empty());
}

TEST_CASE("RabbitMQ: numbers that differ have different texts") {
  const double largest_odd = 9'007'199'254'740'992;  // above this one, doubles have gaps
  const std::vector<double> doubles{0,
                                    0.1,
                                    std::nextafter(0.1, 1),
                                    1,
                                    std::nextafter(1, 2),
                                    1e-7,
                                    2e-7,
                                    std::numeric_limits<double>::denorm_min(),
                                    2 * std::numeric_limits<double>::denorm_min(),
                                    std::numeric_limits<double>::max(),
                                    std::numeric_limits<double>::infinity(),
                                    -std::numeric_limits<double>::infinity(),
                                    std::bit_cast<double>(0x7FF8'0000'0000'0000),
                                    std::bit_cast<double>(0x7FF8'0000'0000'0001),
                                    std::bit_cast<double>(0xFFF8'0000'0000'0000),
                                    largest_odd,
                                    1.2345678901234567e19,
                                    18'446'744'073'709'551'616.0};
  std::set<std::string> texts;
  for (const double each : doubles) CHECK(texts.insert(text_of_double(each)).second);
  for (const float each : {0.1F, std::nextafter(0.1F, 1.0F), std::numeric_limits<float>::denorm_min()}) {
    CHECK(texts.insert(text_of_float(each)).second);
  }
  for (const std::uint32_t bits : {0x7F80'0001U, 0x7FC0'0001U, 0xFFC0'0001U}) {
    CHECK(texts.insert(text_of_float(std::bit_cast<float>(bits))).second);
  }
  CHECK(texts.insert(text_of_signed(-1)).second);
  CHECK(texts.insert(text_of_unsigned(std::numeric_limits<std::uint64_t>::max())).second);
  CHECK(texts.insert(text_of_unsigned(9'007'199'254'740'993)).second);
  CHECK(texts.insert(text_of_unsigned(12'345'678'901'234'567'000U)).second);
  CHECK(text_of_unsigned(9'007'199'254'740'992) == text_of_double(largest_odd));  // the same number
}

}  // namespace
}  // namespace txinbox::test
