// The key and the scope of a request, through a socket.

#include <chrono>
#include <future>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
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

TEST_CASE("a key can come from the JSON of the body") {
  GuardOptions options;
  options.key = http::key_of(JsonTemplate("order:{/order/no}"));
  const Orders t(place_order, options);
  const Response first = t.service.post(R"({"order":{"no":7}})", {});
  check_replay(t.service.post(R"({"order":{"no":7}})", {}), first);
  check_problem(t.service.post(R"({"order":{}})", {}), 400);
  check_problem(t.service.post("no JSON", {}), 400);
  CHECK(t.db.claim_of("nobody/order:7") == "consumed");
}

}  // namespace
}  // namespace txinbox::test
