#include <string>

#include <doctest/doctest.h>
#include <txinbox/error.hpp>

#include "message/json/json_pointer.hpp"
#include "message/json/json_value.hpp"
#include "message/json/key_template.hpp"

using namespace txinbox;
using namespace txinbox::detail;

namespace {

std::string refusal(const std::string& text) {
  try {
    parse_json(text);
  } catch (const JsonError& error) {
    return error.what();
  }
  return "";
}

std::string key(const std::string& key_template, const std::string& line) {
  return KeyTemplate(key_template).key(parse_json(line));
}

/// The error code for an invalid pointer or template.
template <class T>
std::string code_for(const std::string& text) {
  try {
    T{text};
  } catch (const Error& error) {
    return std::string(to_string(error.code()));
  }
  return "";
}

}  // namespace

TEST_CASE("numbers keep their text") {
  const std::string line =
      R"({"a":9223372036854775807,"b":-9223372036854775808,"c":18446744073709551615,)"
      R"("d":123456789012345678901234567890,"e":1.0,"f":0.1234567890123456789,"g":1e400,"h":-0.0,"i":1E+5,"j":-0})";
  const JsonValue root = parse_json(line);
  CHECK(to_json_text(root) == line);
  CHECK(root.find("a")->kind == JsonValue::Kind::integer);
  CHECK(root.find("a")->integer == 9223372036854775807LL);
  CHECK(root.find("b")->integer == -9223372036854775807LL - 1);
  CHECK(root.find("c")->kind == JsonValue::Kind::number);
  CHECK(root.find("g")->text == "1e400");
  CHECK(root.find("j")->kind == JsonValue::Kind::integer);
  CHECK(key("/j", line) == "-0");
}

TEST_CASE("nested JSON is written as it was, in the order it had") {
  const std::string line = R"({"z":{"b":[1.50,null,true,"x\"\\\n\u0001é"],"a":{}},"y":[]})";
  CHECK(to_json_text(parse_json(line)) == line);
}

TEST_CASE("what is not JSON is refused without quoting it") {
  for (const char* line : {"{", "{\"secret\":}", "{\"a\":1}x", "{\"a\":01}", "{'a':1}", "{\"a\":1,}", "{\"a\":\"\t\"}",
                           "{\"a\":\"\\ud800\"}", "{\"a\":\"\\udc00x\"}", "{\"a\":NaN}", "{\"a\":1} {\"b\":2}"}) {
    CAPTURE(line);
    const auto why = refusal(line);
    CHECK(why.starts_with("malformed JSON at byte"));
    CHECK(why.find("secret") == std::string::npos);
  }
  for (const char* text : {"1", "[]", "\"a\"", "null", " {} "}) CHECK(refusal(text).empty());
}

TEST_CASE("a NUL byte does not end a text early") {
  CHECK(refusal(std::string("{\"a\":1}\0{", 9)) == "malformed JSON at byte 8");
}

TEST_CASE("invalid UTF-8 is refused") {
  for (const char* bytes : {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"}) {
    CHECK(refusal(std::string("{\"a\":\"") + bytes + "\"}") == "invalid UTF-8 at byte 7");
    CHECK(refusal(std::string("{\"a\":\"0123456789") + bytes + "0123456789\"}") == "invalid UTF-8 at byte 17");
  }
  CHECK(refusal("{\"a\":\"\xf0\x9f\x98\x80\"}").empty());
}

TEST_CASE("a member named twice is refused at every depth") {
  CHECK(refusal(R"({"a":1,"a":2})") == "malformed JSON: an object names one member twice");
  CHECK(refusal(R"({"a":1,"\u0061":2})") == "malformed JSON: an object names one member twice");
  CHECK(refusal(R"({"x":[{"a":1,"a":2}]})") == "malformed JSON: an object names one member twice");
  CHECK(refusal(R"({"a":{"a":1},"b":{"a":1}})").empty());
  std::string many;
  for (int i = 0; i < 50; ++i) many += "\"a" + std::to_string(i) + "\":{\"a0\":1},";
  CHECK(refusal("{" + many + "\"b\":1}").empty());
  for (int i = 0; i < 50; ++i) {
    CHECK(refusal("{" + many + "\"a" + std::to_string(i) + "\":1}") ==
          "malformed JSON: an object names one member twice");
  }
}

TEST_CASE("nesting is limited, so that no text exhausts the stack") {
  auto nested = [](int depth) {
    return "{\"a\":" + std::string(static_cast<std::size_t>(depth), '[') +
           std::string(static_cast<std::size_t>(depth), ']') + "}";
  };
  CHECK(refusal(nested(max_json_depth - 1)).empty());
  CHECK(refusal(nested(max_json_depth)) == "arrays and objects nest deeper than 256");
  CHECK(refusal(nested(1'000'000)) == "arrays and objects nest deeper than 256");
}

TEST_CASE("the number of values is limited, so that no text exhausts the memory") {
  auto with_ones = [](std::size_t count) {
    std::string line = R"({"a":[1)";
    for (std::size_t i = 1; i < count; ++i) line += ",1";
    return line + "]}";
  };
  CHECK(refusal(with_ones(max_json_values - 2)).empty());  // besides the object and the array
  CHECK(refusal(with_ones(max_json_values - 1)) == "more than 1000000 values");
  CHECK(refusal(R"({"a":)" + with_ones(max_json_values - 2) + "}") == "more than 1000000 values");
}

TEST_CASE("a JSON Pointer finds what RFC 6901 says") {
  const JsonValue root = parse_json(
      R"({"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8,"~1":9})");
  auto found = [&](const char* pointer) {
    const JsonValue* value = JsonPointer(pointer).find(root);
    return value == nullptr ? std::string("none") : to_json_text(*value);
  };
  CHECK(found("/foo") == R"(["bar","baz"])");
  CHECK(found("/foo/0") == "\"bar\"");
  CHECK(found("/foo/1") == "\"baz\"");
  CHECK(found("/") == "0");
  CHECK(found("/a~1b") == "1");
  CHECK(found("/c%d") == "2");
  CHECK(found("/i\\j") == "5");
  CHECK(found("/ ") == "7");
  CHECK(found("/m~0n") == "8");
  CHECK(found("/~01") == "9");
  for (const char* none : {"/foo/2", "/foo/01", "/foo/-", "/foo/-1", "/foo/1x", "/foo/", "/bar", "/foo/0/x",
                           "/foo/99999999999999999999"}) {
    CHECK(found(none) == "none");
  }
  CHECK(JsonPointer("").is_whole());
}

TEST_CASE("a text that is not a JSON Pointer is refused") {
  for (const char* wrong : {"foo", "#/foo", "/a~b", "/a~", "/~2"})
    CHECK(code_for<JsonPointer>(wrong) == "invalid_argument");
}

TEST_CASE("a key is made of scalars as they stood in the JSON") {
  CHECK(key("/order/no", R"({"order":{"no":"A-1"}})") == "A-1");
  CHECK(key("/n", R"({"n":12345678901234567890123})") == "12345678901234567890123");
  CHECK(key("/n", R"({"n":1.0})") == "1.0");
  CHECK(key("/n", R"({"n":1})") == "1");
  CHECK(key("/n", R"({"n":false})") == "false");
  CHECK(key("coupon:{/coupon/id}:{/user}", R"({"coupon":{"id":7},"user":"u"})") == "coupon:7:u");
  CHECK(key("{{{/a}}}", R"({"a":"x"})") == "{x}");
  CHECK(key("{/a}{/b}", R"({"a":"x","b":"y"})") == "xy");
}

TEST_CASE("JSON without a scalar key is refused with the pointer's name") {
  for (auto [line, why] : {std::pair{R"({})", "key: there is no /k"},
                           {R"({"k":null})", "key: /k is null"},
                           {R"({"k":[1]})", "key: /k is an array"},
                           {R"({"k":{}})", "key: /k is an object"}}) {
    CHECK_THROWS_WITH_AS(key("/k", line), why, JsonError);
  }
}

TEST_CASE("an invalid key template is refused") {
  for (const char* wrong : {"", "order", "{/a", "a}", "{}", "{order}", "{{x}}"}) {
    CAPTURE(wrong);
    CHECK(code_for<KeyTemplate>(wrong) == "invalid_argument");
  }
}
