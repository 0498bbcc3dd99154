#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/error.hpp>
#include <txinbox/json.hpp>
#include <txinbox/message.hpp>

#include "support/thrown.hpp"

using namespace txinbox;
using txinbox::test::thrown_by;

namespace {

struct OrderEvent {
  std::string body;
  std::string_view view() const { return body; }
};

}  // namespace

TEST_CASE("a key is made of JSON by a pointer or by a template") {
  CHECK(JsonTemplate("/order/no")(R"({"order":{"no":"A-1"}})") == "A-1");
  CHECK(JsonTemplate("coupon:{/coupon/id}:{/user}")(R"({"coupon":{"id":7.10},"user":"u"})") == "coupon:7.10:u");
  CHECK(JsonTemplate("/0/no")(R"([{"no":true}])") == "true");
}

TEST_CASE("copies of a template make the same keys") {
  const JsonTemplate copy = [] {
    const JsonTemplate original("o:{/no}");
    return JsonTemplate(original);
  }();
  CHECK(copy(R"({"no":1})") == "o:1");
}

TEST_CASE("an invalid template or content is an invalid_argument") {
  for (const char* wrong : {"", "order", "{/a", "a}", "{}", "{order}", "/a~b"}) {
    CAPTURE(wrong);
    CHECK(thrown_by([&] { JsonTemplate{wrong}; }) == "invalid_argument");
  }
  for (const char* wrong : {"amount", "/a~"}) {
    CHECK(thrown_by([&] { JsonContent{wrong}; }) == "invalid_argument");
  }
  CHECK(thrown_by([] { JsonContent(std::vector<std::string_view>{}); }) == "invalid_argument");
}

TEST_CASE("a text that is not JSON is unreadable, and JSON without the key is an invalid_key; both hold no value") {
  const JsonTemplate key("/key");
  const auto fails = [&](ErrorCode code, std::initializer_list<const char*> texts) {
    for (const char* json : texts) {
      CAPTURE(json);
      try {
        (void)key(json);
        FAIL("it has a key");
      } catch (const Error& error) {
        CHECK(error.code() == code);
        CHECK(std::string_view(error.what()).find("secret") == std::string_view::npos);
      }
    }
  };
  fails(ErrorCode::unreadable, {"", "secret", R"({"key":"secret")", R"({"secret":1,"secret":2})"});
  fails(ErrorCode::invalid_key, {R"({"key":{"secret":1}})", R"({"key":null,"a":"secret"})", R"({"secret":"secret"})",
                                 R"(["secret"])", R"("secret")"});
  CHECK(thrown_by([] { (void)JsonContent({"/a"})("{"); }) == "unreadable");
}

TEST_CASE("a template and a content can be of a member of the service's own message") {
  const OrderEvent incoming{R"({"no":"A-1","amount":10.50})"};
  CHECK(JsonTemplate("/no").of(&OrderEvent::body)(incoming) == "A-1");
  CHECK(JsonTemplate("/no").of(&OrderEvent::view)(incoming) == "A-1");
  CHECK(JsonContent({"/amount"}).of([](const OrderEvent& in) { return in.body; })(incoming) == content_of({"10.50"}));
}

TEST_CASE("a content is its fields as JSON text, in all versions") {
  const JsonContent content({"/amount", "/account", "/note", "/to"});
  CHECK(content(R"({ "account" : "DE\u002d1", "amount": 10.50, "to": {"b": [1, null], "a": false} })") ==
        R"(5:10.50,6:"DE-1",0:,24:{"b":[1,null],"a":false},)");
  CHECK(JsonContent({""})(" [1 ] ") == "3:[1],");
}

TEST_CASE("fields that are not the same JSON are not the same content") {
  const JsonContent content({"/a"});
  std::set<std::string> seen;
  const std::vector<const char*> different = {
      R"({})",           R"({"a":null})",          R"({"a":""})",           R"({"a":"null"})",
      R"({"a":1})",      R"({"a":"1"})",           R"({"a":1.0})",          R"({"a":1.00})",
      R"({"a":1e0})",    R"({"a":true})",          R"({"a":"true"})",       R"({"a":[]})",
      R"({"a":{}})",     R"({"a":[""]})",          R"({"a":-0})",           R"({"a":0})",
      R"({"a":[1,2]})",  R"({"a":[12]})",          R"({"a":"[]"})",         R"({"a":"\""})",
      R"({"a":"\\\""})", R"({"a":{"b":1,"c":2}})", R"({"a":{"c":2,"b":1}})"};
  for (const char* json : different) {
    CAPTURE(json);
    CHECK(seen.insert(content(json)).second);
  }
  CHECK(seen.size() == different.size());
}

TEST_CASE("a different notation of the same JSON is the same content") {
  const JsonContent content({"/a", "/b"});
  CHECK(content(R"({"a":"é","b":[1,2]})") == content("{\n \"b\": [ 1,\t2 ],\"x\":0, \"a\":\"\\u00e9\"}"));
}
