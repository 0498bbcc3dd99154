// The functions that find the key of a request.

#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/error.hpp>
#include <txinbox/http.hpp>

#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using http::Request;

Request with_key(const std::string& value) {
  return {.method = "POST", .target = "/orders", .headers = {{"idempotency-KEY", value}}};
}

TEST_CASE("a key in a header field is a structured-field string or a text without quotes") {
  const auto key = http::key_in_header();
  CHECK(key(with_key("8e03"))->text == "8e03");
  CHECK(key(with_key("\"8e03\""))->text == "8e03");
  CHECK(key(with_key(R"("a \"quoted\" \\ key")"))->text == "a \"quoted\" \\ key");
  CHECK(key(with_key("\"a, b\""))->text == "a, b");
  CHECK(key({.method = "POST", .target = "/", .headers = {{"Other", "1"}}}) == std::nullopt);
  CHECK(http::key_in_header("Other")({.method = "POST", .target = "/", .headers = {{"other", "1"}}})->text == "1");
  for (const std::string bad :
       {"", "\"", "\"\"", R"("a\b")", R"("a\)", "\"a\";p=1", "a b", "a\tb", "\"a\tb\"", "a\x7f"}) {
    CAPTURE(bad);
    CHECK(thrown_by([&] { (void)key(with_key(bad)); }) == "invalid_key");
  }
}

TEST_CASE("different requests have different keys of their parameters") {
  const auto key = http::key_of_parameters();
  const Request request{.method = "POST", .target = "/orders", .body = "a=1"};
  const auto text = [&](const Request& of) { return key(of)->text; };
  const std::string first = text(request);
  CHECK(first.size() == 64);
  CHECK(text(request) == first);
  CHECK(text({.method = "PUT", .target = "/orders", .body = "a=1"}) != first);
  CHECK(text({.method = "POST", .target = "/ordersa", .body = "=1"}) != first);
  const auto of_members = http::key_of_parameters({"/user", "/item"});
  const auto body = [&](const std::string& json) {
    return of_members({.method = "POST", .target = "/", .body = json})->text;
  };
  CHECK(body(R"({"user":"a","item":"bc","time":1})") == body(R"({"item":"bc","user":"a","time":2})"));
  CHECK(body(R"({"user":"a","item":"bc"})") != body(R"({"user":"ab","item":"c"})"));
  CHECK(thrown_by([&] { (void)body(R"({"user":"a"})"); }) == "invalid_key");
  CHECK(thrown_by([&] { (void)body(R"({"user")"); }) == "unreadable");
  CHECK(thrown_by([&] { (void)http::key_of_parameters({"user"}); }) == "invalid_argument");
}

TEST_CASE("different requests have different bytes in whole_request") {
  CHECK(http::whole_request({.method = "POST", .target = "/a", .body = "b"}) !=
        http::whole_request({.method = "POST", .target = "/", .body = "ab"}));
  const auto of_part = [](http::Part part) {
    return http::whole_request({.method = "POST", .target = "/", .parts = {std::move(part)}});
  };
  const std::string whole = of_part({.name = "a", .file_name = "f", .content_type = "t", .content = "c"});
  CHECK(of_part({.name = "b", .file_name = "f", .content_type = "t", .content = "c"}) != whole);
  CHECK(of_part({.name = "a", .file_name = "g", .content_type = "t", .content = "c"}) != whole);
  CHECK(of_part({.name = "a", .file_name = "f", .content_type = "u", .content = "c"}) != whole);
  CHECK(of_part({.name = "a", .file_name = "f", .content_type = "t", .content = "d"}) != whole);
  CHECK(of_part({.name = "a", .file_name = "f", .content_type = "tc"}) != whole);
}

}  // namespace
}  // namespace txinbox::test
