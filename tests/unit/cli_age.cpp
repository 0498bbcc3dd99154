#include <string>

#include <doctest/doctest.h>

#include "cli/age.hpp"
#include "shared/base64.hpp"

using namespace txinbox::cli;
using std::chrono::seconds;
using txinbox::component::base64;

TEST_CASE("an age is printed in its greatest whole unit") {
  CHECK(human_age(seconds(-5)) == "0s");
  CHECK(human_age(seconds(59)) == "59s");
  CHECK(human_age(seconds(60)) == "1m");
  CHECK(human_age(seconds(3599)) == "59m");
  CHECK(human_age(seconds(3600)) == "1h");
  CHECK(human_age(seconds(86399)) == "23h");
  CHECK(human_age(seconds(86400 * 400)) == "400d");
}

TEST_CASE("a time is written in UTC, in a table without its fraction") {
  const txinbox::DatabaseTime time = std::chrono::sys_days(std::chrono::year(2026) / 2 / 28) + std::chrono::hours(23) +
                                     std::chrono::microseconds(1'000'005);
  CHECK(time_text(time) == "2026-02-28 23:00:01.000005");
  CHECK(time_to_the_second(time) == "2026-02-28 23:00:01");
  CHECK(time_text(std::nullopt).empty());
  CHECK(time_to_the_second(std::nullopt) == "-");
}

TEST_CASE("bytes in base64 are those of RFC 4648") {
  CHECK(base64("").empty());
  CHECK(base64("f") == "Zg==");
  CHECK(base64("fo") == "Zm8=");
  CHECK(base64("foo") == "Zm9v");
  CHECK(base64("foobar") == "Zm9vYmFy");
  CHECK(base64(std::string("\xFF\xFE\0", 3)) == "//4A");
}
