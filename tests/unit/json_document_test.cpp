#include <optional>
#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <txinbox/error.hpp>
#include <txinbox/json.hpp>

#include "support/thrown.hpp"

using namespace txinbox;
using txinbox::test::thrown_by;

namespace {

struct OrderEvent {
  JsonDocument body;
};

/// The text of the error for invalid JSON.
std::string refusal(std::string_view json) {
  try {
    JsonDocument{json};
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::unreadable);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a parsed message has the key and the content of its text") {
  const JsonTemplate key("coupon:{/coupon/id}:{/user}");
  const JsonContent content({"/amount", "/note", "/coupon", ""});
  for (const char* text :
       {R"({"coupon":{"id":7.10},"user":"u","amount":10.50})", R"({ "user":true, "coupon" : {"id":"\u00e9"} })",
        R"({"coupon":{"id":12345678901234567890123,"x":[1,{}]},"user":-0,"note":null})"}) {
    CAPTURE(text);
    const JsonDocument json(text);
    CHECK(key(json) == key(text));
    CHECK(content(json) == content(text));
  }
}

TEST_CASE("a document outlives its text, and its copies share its values") {
  std::string text = R"({"no":"A-1"})";
  const JsonDocument copy = [&] {
    const JsonDocument json(text);
    text.assign(text.size(), 'x');
    return JsonDocument(json);
  }();
  CHECK(JsonTemplate("/no")(copy) == "A-1");
  const JsonDocument empty(R"({"no":"A-1","item":""})");
  CHECK(thrown_by([&] { (void)JsonTemplate("order:{/no}:{/item}")(empty); }) == "invalid_key");
  CHECK(thrown_by([&] { (void)JsonTemplate("/item")(empty); }) == "invalid_key");
  CHECK(copy.text("/no") == "A-1");
}

TEST_CASE("a document can be a member of the service's own message") {
  const OrderEvent incoming{JsonDocument(R"({"no":"A-1","amount":10.50})")};
  CHECK(JsonTemplate("/no").of(&OrderEvent::body)(incoming) == "A-1");
  CHECK(JsonContent({"/amount"}).of(&OrderEvent::body)(incoming) == "5:10.50,");
}

TEST_CASE("a document gives the text of scalars, and none for what is missing or null") {
  const JsonDocument json(R"({"s":"a\"b","n":1.00,"b":false,"z":null,"a":[7],"o":{"i":""}})");
  CHECK(json.text("/s") == "a\"b");
  CHECK(json.text("/n") == "1.00");
  CHECK(json.text("/b") == "false");
  CHECK(json.text("/a/0") == "7");
  CHECK(json.text("/o/i") == "");
  CHECK(json.text("/z") == std::nullopt);
  CHECK(json.text("/missing") == std::nullopt);
  CHECK(json.text("/a/1") == std::nullopt);
  CHECK(thrown_by([&] { (void)json.text("/a"); }) == "invalid_key");
  CHECK(thrown_by([&] { (void)json.text("/o"); }) == "invalid_key");
  CHECK(thrown_by([&] { (void)json.text(""); }) == "invalid_key");
  CHECK(thrown_by([&] { (void)json.text("s"); }) == "invalid_argument");
  CHECK(JsonDocument("\"x\"").text("") == "x");
}

TEST_CASE("a text that is no JSON is refused with the place, and without its values") {
  CHECK(refusal(R"({"a":"secret")").starts_with("malformed JSON at byte 14"));
  CHECK(refusal(R"({"a":01})") == "malformed JSON at byte 7");
  CHECK(refusal("").starts_with("malformed JSON at byte"));
  CHECK(refusal("{\"a\":\"\xff\"}") == "invalid UTF-8 at byte 7");
  CHECK(refusal(R"({"secret":1,"secret":2})") == "malformed JSON: an object names one member twice");
  CHECK(refusal(std::string(257, '[') + std::string(257, ']')) == "arrays and objects nest deeper than 256");
  CHECK(refusal(std::string(256, '[') + std::string(256, ']')).empty());
}

TEST_CASE("a parsed message without a key is an invalid_key") {
  const JsonTemplate key("/key");
  for (const char* text : {"{}", R"({"key":null})", R"({"key":[]})", R"({"key":{}})", "7"}) {
    CAPTURE(text);
    CHECK(thrown_by([&] { (void)key(JsonDocument(text)); }) == "invalid_key");
  }
}
