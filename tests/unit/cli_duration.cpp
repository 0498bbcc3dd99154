#include <chrono>

#include <doctest/doctest.h>

#include "console/duration.hpp"

using namespace std::chrono_literals;
using txinbox::cli::format_duration;
using txinbox::cli::parse_duration;

TEST_CASE("a duration is a decimal number and its unit") {
  CHECK(parse_duration("500ms") == 500ms);
  CHECK(parse_duration("30s") == 30s);
  CHECK(parse_duration("10m") == 10min);
  CHECK(parse_duration("2h") == 2h);
  CHECK(parse_duration("7d") == 7 * 24h);
  CHECK(parse_duration("0s") == 0ms);
  CHECK(parse_duration("010s") == 10s);
  CHECK(parse_duration("100000d") == 100'000 * 24h);
}

TEST_CASE("a text that is not a duration is refused") {
  for (const char* text :
       {"", "s", "5", "-5s", "+5s", " 5s", "5 s", "5s ", "5.5s", "1e3s", "0x5s", "5S", "5w", "5s5s", "100001d",
        "9223372036854775807ms", "9223372036854775808ms", "9223372036854775807s", "106751991168d"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_duration(text).has_value());
  }
}

TEST_CASE("a duration is written in its two greatest units") {
  using namespace std::chrono_literals;
  CHECK(format_duration(0ms) == "0ms");
  CHECK(format_duration(999ms) == "999ms");
  CHECK(format_duration(1'500ms) == "1s500ms");
  CHECK(format_duration(90s) == "1m30s");
  CHECK(format_duration(2h) == "2h");
  CHECK(format_duration(24h + 59min) == "1d");
  CHECK(format_duration(195h + 59min) == "8d3h");
  CHECK(format_duration(24h * 400) == "400d");
}
