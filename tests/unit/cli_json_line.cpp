#include <doctest/doctest.h>

#include "cli/sql/bind.hpp"

using namespace txinbox::cli;

TEST_CASE("a line is a JSON object") {
  CHECK(parse_json_line(R"({"a":1})").find("a")->integer == 1);
  for (const char* line : {"1", "[]", "\"a\"", "null"}) {
    CHECK_THROWS_WITH_AS(parse_json_line(line), "the line is JSON, but not an object", LineError);
  }
  CHECK_THROWS_WITH_AS(parse_json_line("{"), "malformed JSON at byte 2", LineError);
}
