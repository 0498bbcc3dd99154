// The key and the scope of a request, through a socket.

#include <chrono>
#include <exception>
#include <future>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/http/httplib.hpp>
#include <txinbox/txinbox.hpp>

#include "orders.hpp"
#include "service.hpp"
#include "support/sql_time.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;
using http::GuardOptions;
using http::Response;

TEST_CASE("a request without a valid key gets 400, and no handler runs") {
  GuardOptions options;
  options.documentation = "https://api.example/idempotency";
  const Orders t(place_order, options);
  check_problem(t.service.post("book", {}), 400);
  for (const std::string& key : {std::string("\"\""), std::string(129, 'k'), std::string("a b"), std::string("a,b"),
                                 std::string("\"open"), std::string("\"a\"b"), std::string("k\xc3\xa4")}) {
    CAPTURE(key);
    const Response answer = t.service.order(key, "book");
    check_problem(answer, 400);
    CHECK(field(answer, "Link") == "<https://api.example/idempotency>; rel=\"describedby\"");
  }
  check_problem(t.service.post("book", {{"Idempotency-Key", "a"}, {"Idempotency-Key", "a"}}), 400);
  CHECK(t.service.order(std::string(128, 'k'), "book").status == 201);
  CHECK(t.db.effects() == 1);
}

TEST_CASE("the answer to a request without a key says where to put it") {
  const auto detail = [](http::KeyOf key) {
    GuardOptions options;
    options.key = std::move(key);
    Orders t(place_order, options);
    return t.guard.handle({.method = "POST", .target = "/orders", .body = "book"}, place_order).body;
  };
  CHECK(detail(http::key_in_header()).find("in the header field Idempotency-Key;") != std::string::npos);
  CHECK(detail(http::key_in_header("X-Request-Id")).find("in the header field X-Request-Id;") != std::string::npos);
  const http::Tokens tokens({std::string(32, 's')}, 1h);
  CHECK(detail(tokens.key(tenant, "orders", "Form-Token")).find("in the header field Form-Token;") !=
        std::string::npos);
  const auto none = [](const http::Request&) -> std::optional<std::string> { return std::nullopt; };
  CHECK(detail(none).find("has no key;") != std::string::npos);
  CHECK(detail({none, "the form's field no"}).find("in the form's field no;") != std::string::npos);
}

TEST_CASE("a key from anywhere that the inbox cannot keep gets 400, and no handler runs") {
  std::vector<std::string> logged;
  GuardOptions options;
  options.key = [](const http::Request& request) { return request.body; };
  options.on_error = [&](const std::exception_ptr& error, const http::Request&) {
    logged.push_back(error_class(error));
  };
  Orders t(place_order, options);
  const auto order_of = [&](const std::string& key, const std::string& who = "nobody") {
    return t.guard.handle({.method = "POST", .target = "/", .headers = {{"Tenant", who}}, .body = key}, place_order);
  };
  const std::string longest_scope(120, 's');
  for (const std::string& key : {std::string(), std::string(255 - 7 + 1, 'k'), std::string(308, 'k'),
                                 std::string("a\0b", 3), std::string("\xff\xfe")}) {
    CAPTURE(key.size());
    check_problem(order_of(key), 400);
  }
  check_problem(order_of(std::string(135, 'k'), longest_scope), 400);
  CHECK(t.db.effects() == 0);
  CHECK(logged.empty());
  CHECK(order_of(std::string(255 - 7, 'k')).status == 201);
  CHECK(order_of(std::string(134, 'k'), longest_scope).status == 201);
  CHECK(order_of("\xc3\xa4").status == 201);
  check_problem(order_of("k", "\xff"), 500);
}

TEST_CASE("the same key of another tenant is another key, also if there are slashes in it") {
  // This test uses no socket, because cpp-httplib decodes %2F in header fields.
  Orders t;
  const auto order_of = [&](const std::string& who, const std::string& key) {
    return t.guard.handle(
        {.method = "POST", .target = "/orders", .headers = {{"Tenant", who}, {"Idempotency-Key", key}}, .body = "book"},
        place_order);
  };
  CHECK(field(order_of("a", "b/k"), "Idempotent-Replayed") == "-");
  CHECK(field(order_of("a/b", "k"), "Idempotent-Replayed") == "-");
  CHECK(field(order_of("a%2Fb", "k"), "Idempotent-Replayed") == "-");
  CHECK(field(order_of("a/b", "k"), "Idempotent-Replayed") == "true");
  CHECK(t.db.effects() == 3);
  CHECK(order_of(std::string(120, 'x'), "k").status == 201);
  CHECK(order_of(std::string(121, 'x'), "k").status == 500);
  CHECK(order_of("", "k").status == 500);
  CHECK(t.db.effects() == 4);
}

TEST_CASE("a form is compared by its parts, whatever their boundary") {
  GuardOptions options;
  options.max_request = 100;
  const Orders t(
      [](soci::session& sql, const http::Request& request) -> Response {
        REQUIRE(request.parts.size() == 1);
        const http::Part& part = request.parts.at(0);
        sql << "insert into effect values (:id)", soci::use(part.content);
        return {.status = 201, .body = part.name + part.file_name + part.content_type};
      },
      options);
  const auto upload = [&](const std::string& key, const std::string& content, const std::string& boundary) {
    const std::string body = "--" + boundary +
                             "\r\nContent-Disposition: form-data; name=\"order\"; filename=\"o.txt\"\r\n"
                             "Content-Type: text/plain\r\n\r\n" +
                             content + "\r\n--" + boundary + "--\r\n";
    return post(t.service.port(), "/orders", body, {{"Idempotency-Key", key}},
                "multipart/form-data; boundary=" + boundary);
  };
  const Response first = upload("k", "book", "b1");
  CHECK(first.status == 201);
  CHECK(first.body == "ordero.txttext/plain");
  check_replay(upload("k", "book", "b2"), first);
  check_problem(upload("k", "pen", "b1"), 422);
  check_problem(upload("large", std::string(101, 'x'), "b1"), 413);
  CHECK(t.db.effects() == 1);
}

TEST_CASE("a form whose parts the adapter does not find is not handled") {
  struct LaterRequest {
    bool is_multipart = true;
    bool is_multipart_form_data() const { return is_multipart; }
  };
  http::Request request;
  CHECK_FALSE(http::detail::copy_parts(LaterRequest(), request));
  CHECK(http::detail::copy_parts(LaterRequest{false}, request));
}

TEST_CASE("a form with fields in its body is compared as other bodies are") {
  const Orders t;
  const auto submit = [&](const std::string& body) {
    return post(t.service.port(), "/orders", body, {{"Idempotency-Key", "k"}}, "application/x-www-form-urlencoded");
  };
  const Response first = submit("sku=book");
  CHECK(first.status == 201);
  check_replay(submit("sku=book"), first);
  check_problem(submit("sku=pen"), 422);
}

TEST_CASE("if no key is required, each request without a key runs") {
  GuardOptions options;
  options.required = false;
  const Orders t(place_order, options);
  CHECK(t.service.post("book", {}).status == 201);
  CHECK(field(t.service.post("book", {}), "Idempotent-Replayed") == "-");
  CHECK(t.db.effects() == 2);
  check_problem(t.service.order("a b", "book"), 400);
}

TEST_CASE("equal parameters within valid_for are one request") {
  GuardOptions options;
  options.key = http::key_of_parameters();
  options.valid_for = 1h;
  const Orders t(place_order, options);
  const Response first = t.service.post("book", {});
  check_replay(t.service.post("book", {}), first);
  CHECK(t.service.post("pen", {}).status == 201);
  make_older(t.db, "1 = 1", 2h);
  std::vector<std::future<Response>> clicks;
  for (int i = 0; i < 8; ++i)
    clicks.push_back(std::async(std::launch::async, [&] { return t.service.post("book", {}); }));
  int ran = 0;
  for (auto& click : clicks) {
    const Response answer = click.get();
    if (answer.status == 201 && field(answer, "Idempotent-Replayed") == "-") ++ran;
  }
  CHECK(ran == 1);
  CHECK(t.db.effects_of("book") == 2);
}

TEST_CASE("requests whose chosen parameters are equal are one, unless the fingerprint is another") {
  GuardOptions options;
  options.key = http::key_of_parameters({"/account", "/amount"});
  options.valid_for = 1h;
  const Orders t(place_order, options);
  const Response first = t.service.post(R"({"account":"a","amount":5,"sent_at":1})", {});
  CHECK(first.status == 201);
  check_replay(t.service.post(R"({"account":"a","amount":5,"sent_at":2})", {}), first);
  CHECK(t.service.post(R"({"account":"a","amount":6,"sent_at":2})", {}).status == 201);
  CHECK(t.db.effects() == 2);

  options.fingerprint = http::whole_request;
  const Orders all(place_order, options);
  CHECK(all.service.post(R"({"account":"a","amount":5,"sent_at":1})", {}).status == 201);
  check_problem(all.service.post(R"({"account":"a","amount":5,"sent_at":2})", {}), 422);
}

TEST_CASE("a key can come from the JSON of the body") {
  GuardOptions options;
  options.key = http::key_of(JsonTemplate("order:{/order/no}"));
  const Orders t(place_order, options);
  const Response first = t.service.post(R"({"order":{"no":7}})", {});
  check_replay(t.service.post(R"({"order":{"no":7}})", {}), first);
  check_problem(t.service.post(R"({"order":{}})", {}), 400);
  check_problem(t.service.post("no JSON", {}), 400);
  check_problem(t.service.post(R"({"order":{"no":""}})", {}), 400);
  check_problem(t.service.post(R"({"order":{"no":"a\u0000b"}})", {}), 400);
  check_problem(t.service.post(R"({"order":{"no":")" + std::string(308, 'a') + "\"}}", {}), 400);
  CHECK(t.db.claim_of("nobody/order:7") == "consumed");
}

}  // namespace
}  // namespace txinbox::test
