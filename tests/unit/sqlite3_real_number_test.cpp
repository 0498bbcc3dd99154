#include "backend/sqlite3/real_number.hpp"

#include <doctest/doctest.h>

namespace txinbox::backend {
namespace {

TEST_CASE("SQLite gets a real where a double holds the number, and its text where it does not") {
  const auto is_real = [](const char* json, double value) {
    CAPTURE(json);
    CHECK(sqlite3_real(json) == value);
  };
  is_real("0.1", 0.1);
  is_real("-1.50", -1.5);
  is_real("1.5e3", 1500);
  is_real("0.0", 0);
  is_real("-0.0", 0);
  is_real("0e999999", 0);
  is_real("1E+2", 100);
  is_real("100.00e-1", 10);
  is_real("0.30000000000000004", 0.30000000000000004);
  is_real("123456789012345.67", 123456789012345.67);
  is_real("1.7976931348623157e308", 1.7976931348623157e308);
  is_real("5e-324", 5e-324);
  for (const char* json : {"12345678901234567.89", "0.1234567890123456789", "-12345678901234567.89", "1e400", "1e-400",
                           "1.7976931348623159e308", "9007199254740993.0", "3e-324", "18446744073709551615"}) {
    CAPTURE(json);
    CHECK_FALSE(sqlite3_real(json).has_value());
  }
}

}  // namespace
}  // namespace txinbox::backend
