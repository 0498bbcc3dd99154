#include <string>
#include <variant>

#include <doctest/doctest.h>
#include <txinbox/error.hpp>

#include "backend/registry.hpp"
#include "cli/sql/bind.hpp"

using namespace txinbox::cli;

namespace {

SqlValue bound(const std::string& json, const SqlLimits& limits = {}) {
  return to_sql(*parse_json_line("{\"v\":" + json + "}").find("v"), limits);
}

const std::string& text_of(const SqlValue& value) { return std::get<std::string>(value); }

Script parsed(const std::string& sql) {
  return parse_script(sql, user_sql_of(txinbox::backend::database_named("sqlite3")));
}

}  // namespace

TEST_CASE("a JSON value keeps all information of the line") {
  CHECK(std::holds_alternative<std::monostate>(bound("null")));
  CHECK(std::get<bool>(bound("true")));
  CHECK_FALSE(std::get<bool>(bound("false")));
  CHECK(std::get<long long>(bound("-9223372036854775808")) == -9223372036854775807LL - 1);
  CHECK(text_of(bound("\"x\"")) == "x");
  CHECK(text_of(bound("[1.50, {\"a\" : null}]")) == "[1.50,{\"a\":null}]");
  for (const char* number : {"123456789012345678901234567890", "18446744073709551615", "1.50", "1e400"}) {
    CHECK(std::get<SqlNumber>(bound(number)).text == number);
  }
}

TEST_CASE("text with NUL is refused where it cannot be sent") {
  const SqlLimits limits{.why_no_nul = "no NUL here"};
  CHECK_THROWS_WITH_AS(bound("\"a\\u0000b\"", limits), "no NUL here", LineError);
  CHECK(text_of(bound("\"a\\u0000b\"")) == std::string("a\0b", 3));
  CHECK(text_of(bound("[\"a\\u0000b\"]", limits)) == "[\"a\\u0000b\"]");
}

TEST_CASE("placeholders take top-level members, and --bind overrides them") {
  const Script script = parsed("select :a, :b, :c");
  const Binder binder(script, {"b=/n/b", "c="});
  const std::string line = R"( {"a": 1, "b": 2, "n": {"b": 3}} )";
  const Values values = binder.bind(parse_json_line(line), line, {});
  CHECK(std::get<long long>(values[0]) == 1);
  CHECK(std::get<long long>(values[1]) == 3);
  CHECK(text_of(values[2]) == line);
  CHECK_THROWS_WITH_AS(binder.bind(parse_json_line("{}"), "{}", {}),
                       ":a: there is no such member (a JSON null gives NULL)", LineError);
  CHECK_THROWS_WITH_AS(binder.bind(parse_json_line(R"({"a":1})"), "{}", {}), ":b: there is no /n/b", LineError);
}

TEST_CASE("an invalid --bind is refused") {
  const Script script = parsed("select :a");
  for (const auto& options :
       std::vector<std::vector<std::string>>{{"a"}, {"=/a"}, {"a=b"}, {"z=/a"}, {"a=/a", "a=/b"}, {"a=/~"}}) {
    CHECK_THROWS_AS(Binder(script, options), txinbox::Error);
  }
}
