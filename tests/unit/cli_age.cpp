#include <string>

#include <doctest/doctest.h>

#include "cli/age.hpp"
#include "cli/base64.hpp"

using namespace txinbox::cli;
using std::chrono::seconds;

TEST_CASE("an age is printed in its greatest whole unit") {
  CHECK(human_age(seconds(-5)) == "0s");
  CHECK(human_age(seconds(59)) == "59s");
  CHECK(human_age(seconds(60)) == "1m");
  CHECK(human_age(seconds(3599)) == "59m");
  CHECK(human_age(seconds(3600)) == "1h");
  CHECK(human_age(seconds(86399)) == "23h");
  CHECK(human_age(seconds(86400 * 400)) == "400d");
}

TEST_CASE("the time between two texts is known only if both are times") {
  CHECK(time_between("2026-02-28 23:59:59.999999", "2026-03-01 00:00:01.000000") == seconds(2));
  CHECK_FALSE(time_between("", "2026-03-01 00:00:01.000000").has_value());
}

TEST_CASE("bytes in base64 are those of RFC 4648") {
  CHECK(base64("").empty());
  CHECK(base64("f") == "Zg==");
  CHECK(base64("fo") == "Zm8=");
  CHECK(base64("foo") == "Zm9v");
  CHECK(base64("foobar") == "Zm9vYmFy");
  CHECK(base64(std::string("\xFF\xFE\0", 3)) == "//4A");
}
