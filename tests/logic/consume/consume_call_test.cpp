// A call of consume: its refusals, its exceptions and its events.

#include <chrono>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

const Message order{.business_key = "order123", .message_id = "m-1"};

TEST_CASE("consume throws the handler's exception unchanged, and leaves no rows") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");

  struct Custom {
    int value;
  };
  int value = 0;
  try {
    (void)consumer.consume(order, [](soci::session& sql, Delivery& d) {
      add_effect(sql, d);
      throw Custom{42};
    });
  } catch (const Custom& c) {
    value = c.value;
  }
  CHECK(value == 42);
  CHECK(db.effects() == 0);
  CHECK(db.claims() == 0);
  CHECK(consumer.consume(order, add_effect).outcome == Outcome::consumed);
}

TEST_CASE("a result that is too long is refused, and the message can be consumed later") {
  EffectDatabase db;
  Pool pool = db.pool();
  constexpr std::size_t mebibyte = 1024UL * 1024;
  for (const std::size_t most : {std::size_t{0}, std::size_t{65'535}, mebibyte}) {
    TxConsumer consumer(pool, "order-service", {.max_result = most});
    try {
      (void)consumer.consume(order, [&](soci::session&, Delivery& d) { d.store(std::string(most + 1, 'x')); });
      FAIL("nothing was thrown");
    } catch (const Error& error) {  // a message that always fails must not stop the service
      CHECK(error.code() == ErrorCode::result_too_large);
      CHECK(action_for(std::current_exception()) == Action::dead_letter);
    }
    CHECK(db.claims() == 0);
  }
  CHECK(thrown_by([&] { TxConsumer(pool, "svc", {.max_result = mebibyte + 1}); }) == "invalid_argument");
}

TEST_CASE("consume inside a handler of the same pool is refused, and does not hang") {
  EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer outer(pool, "outer");
  TxConsumer inner(pool, "inner");
  ErrorCode code{};
  CHECK(outer
            .consume(order,
                     [&](soci::session& sql, Delivery& d) {
                       add_effect(sql, d);
                       try {
                         (void)inner.consume(order, add_effect);
                       } catch (const Error& e) {
                         code = e.code();
                       }
                     })
            .outcome == Outcome::consumed);
  CHECK(code == ErrorCode::nested_consume);
  CHECK(db.effects() == 1);
  CHECK(inner.consume(order, add_effect).outcome == Outcome::consumed);
}

TEST_CASE("the listener gets an event for each delivery, and its exceptions are ignored") {
  EffectDatabase db;
  Pool pool = db.pool();
  std::vector<std::string> heard;
  TxConsumer consumer(pool, "order-service", {.listeners = {on_event([&](const Event& event) {
                                                CHECK(event.consumer == "order-service");
                                                CHECK(event.business_key == "order123");
                                                CHECK(event.duration.count() > 0);
                                                heard.emplace_back(to_string(event.type));
                                                throw std::runtime_error("a listener that fails");
                                              })}});
  CHECK_THROWS((void)consumer.consume(order, [](soci::session&, Delivery&) { throw std::runtime_error("no"); }));
  (void)consumer.consume(order, add_effect);
  (void)consumer.consume(order, add_effect);
  CHECK(heard == std::vector<std::string>{"failed", "consumed", "already_consumed"});

  heard.clear();
  TxConsumer refusing(pool, "order-service",
                      {.listeners = {on_event([&](const Event& e) { heard.emplace_back(to_string(e.type)); })}});
  CHECK_THROWS((void)refusing.consume({.business_key = ""}, add_effect));
  CHECK(heard == std::vector<std::string>{"failed"});
}

TEST_CASE("a consumer still works after its pool object was moved and destroyed") {
  EffectDatabase db;
  auto first = std::make_unique<Pool>(db.pool());
  TxConsumer consumer(*first, "order-service");
  Pool moved = std::move(*first);
  first.reset();
  CHECK(consumer.consume(order, add_effect).outcome == Outcome::consumed);
  TxConsumer other = std::move(consumer);
  CHECK(other.consume(order, add_effect).outcome == Outcome::already_consumed);
}

TEST_CASE("the action for a message that its handler rejects is dead_letter") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");
  CHECK(action_for(consumer.consume(order, [](soci::session&) { throw Error(ErrorCode::rejected, "not for us"); })) ==
        Action::dead_letter);
  CHECK(db.effects() == 0);
  CHECK(consumer.consume(order, add_effect).outcome == Outcome::parked);
}

TEST_CASE("no run begins if the wait before it would end after max_elapsed") {
  EffectDatabase db;
  Pool pool = db.pool(1);
  int runs = 0;
  TxConsumer consumer(pool, "svc",
                      {.retry = {.max_runs = 1000,
                                 .initial_backoff = std::chrono::hours(1000),
                                 .max_backoff = std::chrono::hours(1000),
                                 .max_elapsed = std::chrono::seconds(1)}});
  CHECK(thrown_by([&] {
          (void)consumer.consume(order, [&](soci::session&, Delivery&) {
            ++runs;
            throw Error(ErrorCode::acquire_timeout, "transient");
          });
        }) == "acquire_timeout");
  CHECK(runs == 1);
}

}  // namespace
}  // namespace txinbox::test
