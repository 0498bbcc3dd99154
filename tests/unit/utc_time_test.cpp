#include <chrono>
#include <string>

#include <doctest/doctest.h>

#include "base/utc_time.hpp"

namespace txinbox::detail {
namespace {

using namespace std::chrono;

TEST_CASE("a time in UTC is read and written without a change") {
  for (const std::string text : {"1970-01-01 00:00:00.000000", "2024-02-29 23:59:59.123456",
                                 "2026-12-31 00:00:00.000001", "1969-12-31 23:59:59.999999"}) {
    const auto time = parse_utc(text);
    REQUIRE(time.has_value());
    CHECK(utc_text(*time) == text);
  }
  CHECK(parse_utc("2026-01-31 23:59:59") == sys_days(2026y / January / 31) + 24h - 1s);
  CHECK(parse_utc("2026-01-31 00:00:00.5") == sys_days(2026y / January / 31) + 500ms);
}

TEST_CASE("a text that is no time in UTC is not read") {
  for (const std::string text :
       {"", "infinity", "2026-01-31", "2026-01-31T23:59:59", "2026-02-30 00:00:00", "2026-01-31 24:00:00",
        "2026-01-31 23:60:00", "2026-01-31 23:59:60", "2026-01-31 23:59:59.", "2026-01-31 23:59:59.1234567",
        "2026-01-31 23:59:59Z", "2026-01-31 -1:00:00", "+026-01-31 00:00:00", "10000-01-01 00:00:00"}) {
    CHECK_MESSAGE(!parse_utc(text).has_value(), text);
  }
}

}  // namespace
}  // namespace txinbox::detail
