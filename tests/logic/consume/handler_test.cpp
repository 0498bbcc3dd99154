// The kinds of handlers that a consumer accepts.

#include <functional>
#include <string>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/leases.hpp"
#include "support/outcomes.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

void add_a(soci::session& sql) { sql << "insert into effect values ('a')"; }

TEST_CASE("a handler may have no parameter for the delivery") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  CHECK(consumer.consume(order, add_a).outcome == consumed);
  CHECK(consumer.consume({.business_key = "2"}, [](soci::session& sql) { add_a(sql); }).outcome == consumed);
  int runs = 0;
  const std::function<void(soci::session&)> kept = [&](soci::session& sql) {
    ++runs;
    add_a(sql);
  };
  CHECK(outcomes(consumer.consume_batch(messages_of({"3", "4"}), kept)) == Outcomes{consumed, consumed});
  CHECK(runs == 2);
  CHECK(db.effects() == 4);
}

TEST_CASE("an empty handler is refused before anything is claimed") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc", {.max_attempts = 1});
  LeaseConsumer leases(pool, "leases", {}, {.max_attempts = 1});
  void (*const none)(soci::session&) = nullptr;
  for (const Handler& empty :
       {Handler(), Handler(nullptr), Handler(none), Handler(std::function<void(soci::session&)>()),
        Handler(std::function<void(soci::session&, Delivery&)>())}) {
    CHECK(!empty);
    CHECK(thrown_by([&] { (void)consumer.consume(order, empty); }) == "invalid_argument");
    CHECK(thrown_by([&] { (void)consumer.consume_batch(messages_of({"1"}), empty); }) == "invalid_argument");
  }
  CHECK(thrown_by([&] { (void)leases.consume(order, nullptr); }) == "invalid_argument");
  CHECK(db.claims() == 0);
}

TEST_CASE("events have the broker's message id") {
  const EffectDatabase db;
  Pool pool = db.pool(2);
  std::string ids;
  const auto note = [&](const Event& e) { ids += std::string(e.message_id) + " "; };
  TxConsumer consumer(pool, "svc", {.listeners = {on_event(note)}});
  (void)consumer.consume({.business_key = "1", .message_id = "a"}, add_a);
  const std::vector<Message> batch = {{.business_key = "2", .message_id = "b"}, {.business_key = "3"}};
  (void)consumer.consume_batch(batch, add_a);
  LeaseConsumer leases(pool, "leases", {}, {.listeners = {on_event(note)}});
  (void)leases.consume({.business_key = "1", .message_id = "c"}, nothing);
  CHECK(ids == "a b  c ");
}

}  // namespace
}  // namespace txinbox::test
