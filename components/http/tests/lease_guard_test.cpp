// A guard whose handlers run under a lease.

#include <chrono>
#include <future>
#include <latch>
#include <stdexcept>
#include <string>

#include <doctest/doctest.h>
#include <txinbox/txinbox.hpp>

#include "service.hpp"
#include "support/effects.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;
using http::Guard;
using http::GuardOptions;
using http::Request;
using http::Response;

struct Calls {
  EffectDatabase db;
  Pool pool = db.pool({.connections = 4});
  LeaseConsumer consumer;
  Guard guard;
  Service service;

  explicit Calls(Service::LeaseHandler handler, GuardOptions options = {}, LeaseTerms terms = {},
                 ConsumerOptions of_consumer = {})
      : consumer(pool, "POST /orders", terms, std::move(of_consumer)),
        guard(
            consumer, [](const Request&) { return "all"; }, std::move(options)),
        service(guard, std::move(handler)) {}
};

TEST_CASE("under a lease: the answer is kept and replayed, a copy of a running request gets 409") {
  std::latch begun{1};
  std::promise<void> end;
  auto ended = end.get_future().share();
  const Calls t([&](Lease& lease, const Request& request) -> Response {
    begun.count_down();
    ended.wait();
    return {.status = 201, .body = request.body + (lease.fence() > 0 ? " done" : "")};
  });
  auto first = std::async(std::launch::async, [&] { return t.service.order("k", "call"); });
  begun.wait();
  const Response copy = t.service.order("k", "call");
  CHECK(copy.status == 409);
  CHECK(field(copy, "Retry-After") == "1");
  end.set_value();
  CHECK(first.get().body == "call done");
  const Response replay = t.service.order("k", "call");
  CHECK(replay.body == "call done");
  CHECK(field(replay, "Idempotent-Replayed") == "true");
  CHECK(t.service.order("k", "another").status == 422);
}

TEST_CASE("under a lease: a refusal is kept, and 5xx only if the options say so") {
  for (const bool keeps : {false, true}) {
    GuardOptions options;
    options.keep_server_errors = keeps;
    int runs = 0;
    const Calls t(
        [&](Lease&, const Request& request) -> Response {
          ++runs;
          if (request.body == "refuse") throw http::Refusal({.status = 402, .body = "no"});
          return {.status = 502, .body = "bad gateway"};
        },
        options);
    for (int i = 0; i < 2; ++i) {
      CHECK(t.service.order("r", "refuse").body == "no");
      CHECK(t.service.order("e", "fail").body == "bad gateway");
    }
    CHECK(runs == (keeps ? 2 : 3));
  }
}

TEST_CASE("under a lease: with claim_wait, a copy gets the answer of the first") {
  std::latch begun{1};
  std::promise<void> end;
  auto ended = end.get_future().share();
  const Calls t(
      [&](Lease&, const Request&) -> Response {
        begun.count_down();
        ended.wait();
        return {.status = 200, .body = "done"};
      },
      {}, {}, {.claim_wait = 1h});
  auto first = std::async(std::launch::async, [&] { return t.service.order("k", "call"); });
  begun.wait();
  auto copy = std::async(std::launch::async, [&] { return t.service.order("k", "call"); });
  CHECK(copy.wait_for(50ms) == std::future_status::timeout);
  end.set_value();
  CHECK(first.get().body == "done");
  CHECK(copy.get().body == "done");
}

}  // namespace
}  // namespace txinbox::test
