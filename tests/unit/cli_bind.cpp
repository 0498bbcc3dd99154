#include <string>
#include <variant>

#include <doctest/doctest.h>
#include <txinbox/error.hpp>

#include "cli/sql/bind.hpp"

using namespace txinbox::cli;

namespace {

BoundValue bound(const std::string& json, Database database) {
  return to_bound(*parse_json_line("{\"v\":" + json + "}").find("v"), default_dialect(database));
}

const std::string& text_of(const BoundValue& value) { return std::get<std::string>(value); }

}  // namespace

TEST_CASE("each JSON value is bound as the database can hold it whole") {
  for (auto database : {Database::sqlite3, Database::mysql, Database::postgresql}) {
    CHECK(std::holds_alternative<std::monostate>(bound("null", database)));
    CHECK(std::get<long long>(bound("-9223372036854775808", database)) == -9223372036854775807LL - 1);
    CHECK(text_of(bound("\"x\"", database)) == "x");
    CHECK(text_of(bound("[1.50, {\"a\" : null}]", database)) == "[1.50,{\"a\":null}]");
    CHECK(text_of(bound("123456789012345678901234567890", database)) == "123456789012345678901234567890");
  }
  CHECK(std::get<long long>(bound("true", Database::sqlite3)) == 1);
  CHECK(std::get<long long>(bound("false", Database::mysql)) == 0);
  CHECK(text_of(bound("true", Database::postgresql)) == "true");
  CHECK(std::get<unsigned long long>(bound("18446744073709551615", Database::mysql)) == 18446744073709551615ULL);
  CHECK(text_of(bound("18446744073709551615", Database::postgresql)) == "18446744073709551615");
  CHECK(text_of(bound("18446744073709551615", Database::sqlite3)) == "18446744073709551615");
  CHECK(std::get<double>(bound("1.5e3", Database::sqlite3)) == 1500.0);
  CHECK(text_of(bound("1e400", Database::sqlite3)) == "1e400");
  CHECK(text_of(bound("1.50", Database::mysql)) == "1.50");
  CHECK(text_of(bound("1.50", Database::postgresql)) == "1.50");
}

TEST_CASE("SQLite gets a real where a double holds the number, and its text where it does not") {
  const auto is_real = [](const std::string& json, double value) {
    const BoundValue number = bound(json, Database::sqlite3);
    const auto* real = std::get_if<double>(&number);
    CAPTURE(json);
    CHECK((real != nullptr && *real == value));
  };
  is_real("0.1", 0.1);
  is_real("-1.50", -1.5);
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
                           "1.7976931348623159e308", "9007199254740993.0", "3e-324"}) {
    CAPTURE(json);
    CHECK(text_of(bound(json, Database::sqlite3)) == json);
  }
}

TEST_CASE("text with NUL is refused where it would be cut") {
  CHECK_THROWS_AS(bound("\"a\\u0000b\"", Database::postgresql), LineError);
  CHECK(text_of(bound("\"a\\u0000b\"", Database::mysql)) == std::string("a\0b", 3));
  CHECK(text_of(bound("\"a\\u0000b\"", Database::sqlite3)) == std::string("a\0b", 3));
  CHECK(text_of(bound("[\"a\\u0000b\"]", Database::postgresql)) == "[\"a\\u0000b\"]");
  Dialect dialect = default_dialect(Database::mysql);
  dialect.backslash_escapes = false;
  JsonValue value;
  value.kind = JsonValue::Kind::string;
  value.text = std::string("a\0b", 3);
  CHECK_THROWS_AS(to_bound(value, dialect), LineError);
}

TEST_CASE("placeholders take top-level members, and --bind overrides them") {
  const Dialect dialect = default_dialect(Database::sqlite3);
  const Script script = parse_script("select :a, :b, :c", dialect);
  const Binder binder(script, {"b=/n/b", "c="});
  const std::string line = R"( {"a": 1, "b": 2, "n": {"b": 3}} )";
  const Values values = binder.bind(parse_json_line(line), line, dialect);
  CHECK(std::get<long long>(values[0]) == 1);
  CHECK(std::get<long long>(values[1]) == 3);
  CHECK(text_of(values[2]) == line);
  CHECK_THROWS_WITH_AS(binder.bind(parse_json_line("{}"), "{}", dialect),
                       ":a: there is no such member (a JSON null gives NULL)", LineError);
  CHECK_THROWS_WITH_AS(binder.bind(parse_json_line(R"({"a":1})"), "{}", dialect), ":b: there is no /n/b", LineError);
}

TEST_CASE("a --bind that cannot be meant is refused") {
  const Script script = parse_script("select :a", default_dialect(Database::sqlite3));
  for (const auto& options :
       std::vector<std::vector<std::string>>{{"a"}, {"=/a"}, {"a=b"}, {"z=/a"}, {"a=/a", "a=/b"}, {"a=/~"}}) {
    CHECK_THROWS_AS(Binder(script, options), txinbox::Error);
  }
}
