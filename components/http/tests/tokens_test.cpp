// Signed tokens.

#include <chrono>
#include <set>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/http.hpp>

#include "orders.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;
using http::GuardOptions;
using http::Request;
using http::Tokens;

const std::string secret(32, 's');
const std::string new_secret(32, 'n');

std::string scope(const Request& request) { return request.body; }

Request with_token(const std::string& token, const std::string& who = "user") {
  return {.method = "POST", .target = "/orders", .headers = {{"Idempotency-Key", token}}, .body = who};
}

TEST_CASE("a token is valid for its scope and its route") {
  const Tokens tokens({secret}, 1h);
  const auto key = tokens.key(scope, "orders");
  const std::string token = tokens.issue("user", "orders");
  CHECK(token.size() == 75);
  CHECK(key(with_token(token))->text == token);
  CHECK(key(with_token(token))->too_late.empty());
  CHECK(key({.method = "POST", .target = "/orders"}) == std::nullopt);
  CHECK(thrown_by([&] { (void)key(with_token(token, "another")); }) == "invalid_key");
  CHECK(thrown_by([&] { (void)tokens.key(scope, "payments")(with_token(token)); }) == "invalid_key");
  CHECK(thrown_by([&] { (void)Tokens({new_secret}, 1h).key(scope, "orders")(with_token(token)); }) == "invalid_key");
}

TEST_CASE("a secret can be replaced") {
  const std::string old_token = Tokens({secret}, 1h).issue("user", "orders");
  const Tokens tokens({new_secret, secret}, 1h);
  CHECK(tokens.key(scope, "orders")(with_token(old_token))->text == old_token);
  const std::string token = tokens.issue("user", "orders");
  CHECK(Tokens({new_secret}, 1h).key(scope, "orders")(with_token(token))->text == token);
}

TEST_CASE("no other text is a token, neither with one changed character nor with other unused bits") {
  const Tokens tokens({secret}, 1h);
  const auto key = tokens.key(scope, "orders");
  const std::string token = tokens.issue("user", "orders");
  const std::string alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/=";
  for (std::size_t at = 0; at < token.size(); ++at) {
    for (const char c : alphabet) {
      if (c == token[at]) continue;
      std::string forged = token;
      forged[at] = c;
      REQUIRE(thrown_by([&] { (void)key(with_token(forged)); }) == "invalid_key");
    }
  }
  CHECK(thrown_by([&] { (void)key(with_token(token + "=")); }) == "invalid_key");
  CHECK(thrown_by([&] { (void)key(with_token("x")); }) == "invalid_key");
}

TEST_CASE("tokens are different") {
  const Tokens tokens({secret}, 1s);
  std::set<std::string> all;
  for (int i = 0; i < 100; ++i) all.insert(tokens.issue("user", "orders"));
  CHECK(all.size() == 100);
}

TEST_CASE("after its end, a used token replays its answer, and an unused one is refused" *
          doctest::test_suite("timed")) {
  const Tokens tokens({secret}, 1s);
  const auto key = tokens.key(tenant, "orders");
  GuardOptions options;
  options.key = key;
  Orders t(place_order, options);
  // The first order is in time, however slow the machine is.
  options.key = [&](const Request& request) {
    auto found = key(request);
    found->too_late.clear();
    return found;
  };
  http::Guard in_time(t.consumer, tenant, options);
  const auto order_with = [&](const std::string& token) {
    return t.guard.handle(with_token(token, "book"), place_order);
  };
  const std::string used = tokens.issue("nobody", "orders");
  const http::Response first = in_time.handle(with_token(used, "book"), place_order);
  REQUIRE(first.status == 201);
  const std::string unused = tokens.issue("nobody", "orders");
  while (key(with_token(unused))->too_late.empty()) std::this_thread::sleep_for(50ms);

  check_replay(order_with(used), first);
  check_problem(t.guard.handle(with_token(used, "pen"), place_order), 422);
  for (int i = 0; i < 2; ++i) check_problem(order_with(unused), 400);
  CHECK(t.db.effects() == 1);
  CHECK(t.db.number("select count(*) from txinbox_consumed_message") == 1);
  CHECK(t.db.number("select count(*) from txinbox_failed_message") == 0);
  t.db.run("delete from txinbox_consumed_message");
  check_problem(order_with(used), 400);
  CHECK(t.db.effects() == 1);
}

TEST_CASE("short secrets and a validity out of range are refused") {
  CHECK(thrown_by([] { Tokens({}, 1h); }) == "invalid_argument");
  CHECK(thrown_by([] { Tokens({std::string(31, 's')}, 1h); }) == "invalid_argument");
  CHECK(thrown_by([] { Tokens({secret, ""}, 1h); }) == "invalid_argument");
  CHECK(thrown_by([] { Tokens({secret}, 0s); }) == "invalid_argument");
  CHECK(thrown_by([] { Tokens({secret}, std::chrono::seconds::max()); }) == "invalid_argument");
}

}  // namespace
}  // namespace txinbox::test
