// Each row of the guard's table, through a socket.

#include <atomic>
#include <chrono>
#include <future>
#include <latch>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "service.hpp"
#include "support/effects.hpp"
#include "support/sql_time.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;
using http::Guard;
using http::GuardOptions;
using http::Request;
using http::Response;

std::string tenant(const Request& request) {
  return std::string(http::find_header(request.headers, "Tenant").value_or("nobody"));
}

/// Inserts an order, and answers with its number, which is different in each run.
Response place_order(soci::session& sql, const Request& request) {
  static std::atomic<int> next = 0;
  const std::string no = std::to_string(++next);
  sql << "insert into effect values (:id)", soci::use(request.body);
  return {.status = 201,
          .headers = {{"Content-Type", "application/json"}, {"Location", "/orders/" + no}, {"Set-Cookie", "sid=1"}},
          .body = "{\"no\":" + no + "}"};
}

struct Orders {
  EffectDatabase db;
  Pool pool = db.pool({.connections = 4});
  TxConsumer consumer;
  Guard guard;
  Service service;

  explicit Orders(Service::Handler handler = place_order, GuardOptions options = {}, TxConsumerOptions of_consumer = {})
      : consumer(pool, "POST /orders", with_claim_wait(std::move(of_consumer))),
        guard(consumer, tenant, std::move(options)),
        service(guard, std::move(handler)) {}

  static TxConsumerOptions with_claim_wait(TxConsumerOptions options) {
    if (!options.claim_wait) options.claim_wait = 0ms;
    return options;
  }
};

void check_problem(const Response& response, int status) {
  CHECK(response.status == status);
  CHECK(field(response, "Content-Type") == "application/problem+json");
  CHECK(response.body.find("\"status\":" + std::to_string(status)) != std::string::npos);
  CHECK(field(response, "Idempotent-Replayed") == "-");
}

void check_replay(const Response& replay, const Response& first) {
  CHECK(replay.status == first.status);
  CHECK(replay.body == first.body);
  CHECK(field(replay, "Content-Type") == field(first, "Content-Type"));
  CHECK(field(replay, "Location") == field(first, "Location"));
  CHECK(field(replay, "Idempotent-Replayed") == "true");
  CHECK(field(replay, "Set-Cookie") == "-");
}

TEST_CASE("the first request runs, and the same one again gets its answer, with and without quotes") {
  const Orders t;
  const Response first = t.service.order("k1", "book");
  CHECK(first.status == 201);
  CHECK(field(first, "Set-Cookie") == "sid=1");
  CHECK(field(first, "Idempotent-Replayed") == "-");
  check_replay(t.service.order("k1", "book"), first);
  check_replay(t.service.order("\"k1\"", "book"), first);
  check_replay(t.service.order(" k1 ", "book"), first);
  const Response second = t.service.order("k2", "book");
  CHECK(second.status == 201);
  CHECK(second.body != first.body);
  CHECK(t.db.effects() == 2);
  CHECK(t.db.claim_of("nobody/k1") == "consumed");
}

TEST_CASE("a request without a valid key gets 400, and runs nothing") {
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

TEST_CASE("another request under the key gets 422, does not see the answer, and fills no table") {
  const Orders t;
  CHECK(t.service.order("k", "book").status == 201);
  for (int i = 0; i < 20; ++i) check_problem(t.service.order("k", "other " + std::to_string(i)), 422);
  CHECK(t.db.effects() == 1);
  CHECK(t.db.number("select count(*) from txinbox_conflicting_message") == 8);
}

TEST_CASE("the same key of another tenant is another key, whatever slashes are in it") {
  // Without a socket, because cpp-httplib decodes %2F in header fields.
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

TEST_CASE("a copy of a running request gets 409 at once, and other requests run") {
  std::latch begun{1};
  std::promise<void> end;
  auto ended = end.get_future().share();
  const Orders t([&](soci::session& sql, const Request& request) {
    if (request.body == "slow") {
      begun.count_down();
      ended.wait();
    }
    return place_order(sql, request);
  });
  auto first = std::async(std::launch::async, [&] { return t.service.order("k", "slow"); });
  begun.wait();
  for (int i = 0; i < 5; ++i) {
    const Response copy = t.service.order("k", "slow");
    check_problem(copy, 409);
    CHECK(field(copy, "Retry-After") == "1");
  }
  if (!on_sqlite3()) CHECK(t.service.order("another", "book").status == 201);  // SQLite has one writer
  end.set_value();
  const Response answer = first.get();
  CHECK(answer.status == 201);
  check_replay(t.service.order("k", "slow"), answer);
}

TEST_CASE("with claim_wait, a copy of a running request waits for the answer") {
  std::latch begun{1};
  std::promise<void> end;
  auto ended = end.get_future().share();
  const Orders t(
      [&](soci::session& sql, const Request& request) {
        begun.count_down();
        ended.wait();
        return place_order(sql, request);
      },
      {}, {.claim_wait = 1h});
  auto first = std::async(std::launch::async, [&] { return t.service.order("k", "slow"); });
  begun.wait();
  auto copy = std::async(std::launch::async, [&] { return t.service.order("k", "slow"); });
  CHECK(copy.wait_for(100ms) == std::future_status::timeout);
  end.set_value();
  const Response answer = first.get();
  CHECK(answer.status == 201);
  check_replay(copy.get(), answer);
  CHECK(t.db.effects() == 1);
}

TEST_CASE("a refusal leaves nothing but its answer, which is replayed") {
  int runs = 0;
  const Orders t([&](soci::session& sql, const Request& request) -> Response {
    ++runs;
    (void)place_order(sql, request);
    throw http::Refusal({.status = 402, .headers = {{"Content-Type", "text/plain"}}, .body = "no money"});
  });
  const Response first = t.service.order("k", "book");
  CHECK(first.status == 402);
  CHECK(first.body == "no money");
  check_replay(t.service.order("k", "book"), first);
  check_problem(t.service.order("k", "other"), 422);
  CHECK(runs == 1);
  CHECK(t.db.effects() == 0);
  CHECK(t.db.number("select count(*) from txinbox_failed_message") == 0);
}

TEST_CASE("an answer of 5xx and an exception leave nothing, and a retry runs again") {
  int runs = 0;
  std::vector<std::string> logged;
  GuardOptions options;
  options.on_error = [&](const std::exception_ptr& error, const Request&) { logged.push_back(error_class(error)); };
  const Orders t(
      [&](soci::session& sql, const Request& request) -> Response {
        (void)place_order(sql, request);
        switch (++runs) {
          case 1:
            return {.status = 503, .headers = {{"Content-Type", "text/plain"}}, .body = "the stock service is away"};
          case 2:
            throw std::runtime_error("secret of the service");
          case 3:
            throw RetryLater(30s);
          default:
            return {.status = 201, .headers = {{"Content-Type", "text/plain"}}, .body = "done"};
        }
      },
      options);
  const Response away = t.service.order("k", "book");
  CHECK(away.status == 503);
  CHECK(away.body == "the stock service is away");
  const Response thrown = t.service.order("k", "book");
  check_problem(thrown, 500);
  CHECK(thrown.body.find("secret") == std::string::npos);
  const Response later = t.service.order("k", "book");
  check_problem(later, 503);
  CHECK(field(later, "Retry-After") == "1");
  CHECK(t.db.effects() == 0);
  const Response done = t.service.order("k", "book");
  CHECK(done.status == 201);
  check_replay(t.service.order("k", "book"), done);
  CHECK(t.db.effects() == 1);
  CHECK(logged == std::vector<std::string>{"std::runtime_error"});
}

TEST_CASE("what the database cannot do now is 503; a message that is given up is 409") {
  const Orders t;
  CHECK(t.service.order("k", "book").status == 201);
  t.db.run("update txinbox_consumed_message set state = 'parked'");
  check_problem(t.service.order("k", "book"), 409);
  t.db.run("drop table txinbox_consumed_message");
  const Response gone = t.service.order("k2", "book");
  CHECK(gone.status >= 500);
  CHECK(t.db.effects() == 1);
}

TEST_CASE("an answer that is too large is rolled back, or kept without its body") {
  const auto large = [](soci::session& sql, const Request& request) {
    Response response = place_order(sql, request);
    response.body.assign(70'000, '\xff');
    return response;
  };
  const Orders t(large);
  check_problem(t.service.order("k", "book"), 500);
  CHECK(t.db.effects() == 0);

  GuardOptions options;
  options.keep_head = true;
  const Orders head(large, options);
  const Response first = head.service.order("k", "book");
  CHECK(first.body.size() == 70'000);
  const Response replay = head.service.order("k", "book");
  CHECK(replay.status == 201);
  CHECK(replay.body.empty());
  CHECK(field(replay, "Location") == field(first, "Location"));
  CHECK(head.db.effects() == 1);

  const Orders all(large, {}, {.max_result = 100'000});
  CHECK(all.service.order("k", "book").body.size() == 70'000);
  CHECK(all.service.order("k", "book").body.size() == 70'000);
}

TEST_CASE("a handler cannot smuggle a header field into a later answer") {
  const Orders t([](soci::session& sql, const Request& request) {
    Response response = place_order(sql, request);
    response.headers.push_back({"Location", "/orders/1\r\nSet-Cookie: sid=2"});
    return response;
  });
  check_problem(t.service.order("k", "book"), 500);
  CHECK(t.db.effects() == 0);
}

TEST_CASE("a body that is too large gets 413") {
  GuardOptions options;
  options.max_request = 10;
  const Orders t(place_order, options);
  check_problem(t.service.order("k", "12345678901"), 413);
  CHECK(t.service.order("k", "1234567890").status == 201);
}

TEST_CASE("without a key, where none is required, each request runs") {
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
  options.valid_for = 10s;
  const Orders t(place_order, options);
  const Response first = t.service.post("book", {});
  check_replay(t.service.post("book", {}), first);
  CHECK(t.service.post("pen", {}).status == 201);
  make_older(t.db, "1 = 1", 11s);
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

TEST_CASE("a key in the JSON of the body") {
  GuardOptions options;
  options.key = http::key_of(JsonTemplate("order:{/order/no}"));
  const Orders t(place_order, options);
  const Response first = t.service.post(R"({"order":{"no":7}})", {});
  check_replay(t.service.post(R"({"order":{"no":7}})", {}), first);
  check_problem(t.service.post(R"({"order":{}})", {}), 400);
  check_problem(t.service.post("no JSON", {}), 400);
  CHECK(t.db.claim_of("nobody/order:7") == "consumed");
}

TEST_CASE("three copies of each of many requests at once: one runs, and all answers of a key are equal") {
  const Orders t(place_order, {}, {.claim_wait = 1h});
  constexpr int keys = 40;
  for (int i = 0; i < keys; ++i) {
    std::vector<std::future<Response>> copies;
    for (int copy = 0; copy < 3; ++copy) {
      copies.push_back(
          std::async(std::launch::async, [&] { return t.service.order("k" + std::to_string(i), "book"); }));
    }
    std::vector<std::string> bodies;
    int replayed = 0;
    for (auto& copy : copies) {
      const Response answer = copy.get();
      CHECK(answer.status == 201);
      bodies.push_back(answer.body);
      replayed += field(answer, "Idempotent-Replayed") == "true" ? 1 : 0;
    }
    CHECK(bodies[0] == bodies[1]);
    CHECK(bodies[1] == bodies[2]);
    CHECK(replayed == 2);
  }
  CHECK(t.db.effects() == keys);
}

TEST_CASE("a guard with wrong options is refused") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer without_wait(pool, "svc");
  TxConsumer consumer(pool, "svc", {.claim_wait = 0ms});
  const auto refusal = [&](GuardOptions options) {
    return thrown_by([&] { Guard(consumer, tenant, std::move(options)); });
  };
  CHECK(thrown_by([&] { Guard(without_wait, tenant); }) == "invalid_argument");
  CHECK(thrown_by([&] { Guard(consumer, nullptr); }) == "invalid_argument");
  CHECK(refusal({.key = nullptr}) == "invalid_argument");
  CHECK(refusal({.fingerprint = nullptr}) == "invalid_argument");
  CHECK(refusal({.valid_for = -1ms}) == "invalid_argument");
  CHECK(refusal({.kept_headers = {"set-cookie"}}) == "invalid_argument");
  CHECK(refusal({.max_retry_after = 0ms}) == "invalid_argument");
  CHECK(refusal({}) == "nothing");
  Guard guard(consumer, tenant);
  const Response wrong = guard.handle({.method = "POST", .target = "/", .headers = {{"Idempotency-Key", "k"}}},
                                      [](Lease&, const Request&) { return Response{}; });
  CHECK(wrong.status == 500);
}

}  // namespace
}  // namespace txinbox::test
