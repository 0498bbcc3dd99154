// Each row of the table in the documentation of Guard, through a socket.

#include <chrono>
#include <functional>
#include <future>
#include <latch>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/native.hpp>
#include <txinbox/soci/execute.hpp>
#include <txinbox/txinbox.hpp>

#include "orders.hpp"
#include "service.hpp"
#include "support/effects.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;
using http::Guard;
using http::GuardOptions;
using http::Request;
using http::Response;

TEST_CASE("the first request runs, and a copy gets its answer, with and without quotes around the key") {
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

TEST_CASE("another request with the key gets 422 without the answer, and at most 8 conflicts are recorded") {
  const Orders t;
  CHECK(t.service.order("k", "book").status == 201);
  for (int i = 0; i < 20; ++i) check_problem(t.service.order("k", "other " + std::to_string(i)), 422);
  CHECK(t.db.effects() == 1);
  CHECK(t.db.number("select count(*) from txinbox_conflicting_message") == 8);
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

TEST_CASE("after a refusal, only its answer is stored, and it is replayed") {
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

TEST_CASE("after a 5xx answer or an exception, nothing is stored, and a retry runs again") {
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

TEST_CASE("an error of the database is 5xx, and a parked message is 409") {
  const Orders t;
  CHECK(t.service.order("k", "book").status == 201);
  t.db.run("update txinbox_consumed_message set state = 'parked'");
  check_problem(t.service.order("k", "book"), 409);
  t.db.run("drop table txinbox_consumed_message");
  const Response gone = t.service.order("k2", "book");
  CHECK(gone.status >= 500);
  CHECK(t.db.effects() == 1);
}

TEST_CASE("if an answer is too large, the transaction is rolled back, or the answer is stored without its body") {
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

TEST_CASE("a handler cannot add a header field to a replayed answer with a line break in a value") {
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

struct Statements {
  explicit Statements(soci::session& /*sql*/) {}
  int uses = 0;
};

Response place_prepared(soci::session& sql, const Request& request, Delivery& delivery) {
  execute(sql, delivery, "insert into effect values (:id)", request.body);
  const int uses = ++delivery.per_connection<Statements>(sql).uses;
  return {
      .status = 201,
      .body = delivery.message().business_key + " " + std::to_string(delivery.attempt()) + " " + std::to_string(uses)};
}

TEST_CASE("a handler may take the delivery, and keep statements prepared with it") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "POST /orders", {.claim_wait = 0ms});
  Guard guard(consumer, tenant);
  const auto order_with = [&](const std::string& key, const auto& handler) {
    return guard.handle({.method = "POST", .target = "/orders", .headers = {{"Idempotency-Key", key}}, .body = "book"},
                        handler);
  };
  const Response first = order_with("k1", place_prepared);
  CHECK(first.status == 201);
  CHECK(first.body == "nobody/k1 1 1");
  check_replay(order_with("k1", place_prepared), first);
  CHECK(order_with("k2", place_prepared).body == "nobody/k2 1 2");
  const std::function<Response(soci::session&, const Request&, Delivery&)> function = place_prepared;
  CHECK(order_with("k3", function).body == "nobody/k3 1 3");
  const auto generic = [](auto& sql, const Request& request, auto& delivery) {
    return place_prepared(sql, request, delivery);
  };
  CHECK(order_with("k4", generic).body == "nobody/k4 1 4");
  CHECK(db.effects() == 4);

  const Response native = order_with("k6", [](NativeHandle connection, const Request&, Delivery& delivery) {
    return Response{.status = 200, .body = std::string(connection.database()) + delivery.message().business_key};
  });
  CHECK(native.body.ends_with("nobody/k6"));

  const Response stored = order_with("k5", [](soci::session&, const Request&, Delivery& delivery) {
    delivery.store("of the handler");
    return Response{.status = 201, .body = "of the guard"};
  });
  CHECK(stored.body == "of the guard");
  check_replay(order_with("k5", place_prepared), stored);
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
