#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <utility>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "service.hpp"
#include "support/effects.hpp"

namespace txinbox::test {

inline std::string tenant(const http::Request& request) {
  return std::string(http::find_header(request.headers, "Tenant").value_or("nobody"));
}

/// Inserts an order, and answers with its number, which is different in each run.
inline http::Response place_order(soci::session& sql, const http::Request& request) {
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
  http::Guard guard;
  Service service;

  explicit Orders(Service::Handler handler = place_order, http::GuardOptions options = {},
                  ConsumerOptions of_consumer = {})
      : consumer(pool, "POST /orders", with_claim_wait(std::move(of_consumer))),
        guard(consumer, tenant, std::move(options)),
        service(guard, std::move(handler)) {}

  static ConsumerOptions with_claim_wait(ConsumerOptions options) {
    if (!options.claim_wait) options.claim_wait = std::chrono::milliseconds(0);
    return options;
  }
};

inline void check_problem(const http::Response& response, int status) {
  CHECK(response.status == status);
  CHECK(field(response, "Content-Type") == "application/problem+json");
  CHECK(response.body.find("\"status\":" + std::to_string(status)) != std::string::npos);
  CHECK(field(response, "Idempotent-Replayed") == "-");
}

inline void check_replay(const http::Response& replay, const http::Response& first) {
  CHECK(replay.status == first.status);
  CHECK(replay.body == first.body);
  CHECK(field(replay, "Content-Type") == field(first, "Content-Type"));
  CHECK(field(replay, "Location") == field(first, "Location"));
  CHECK(field(replay, "Idempotent-Replayed") == "true");
  CHECK(field(replay, "Set-Cookie") == "-");
}

}  // namespace txinbox::test
