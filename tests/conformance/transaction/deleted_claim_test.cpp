// A handler deletes or changes the claim of its own message. The message is not reported as consumed, because the next
// delivery would find no claim and run again.

#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/outcomes.hpp"
#include "support/schema_tools.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

const Message order{.business_key = "order123"};

void delete_claim(soci::session& sql, Delivery& delivery) {
  add_effect(sql, delivery);
  sql << "delete from txinbox_consumed_message where business_key = '" + delivery.message().business_key + "'";
}

void check_runs_again(const EffectDatabase& db, TxConsumer& consumer) {
  CHECK(db.effects_of("order123") == 0);
  CHECK(consumer.consume(order, add_effect).outcome == consumed);
  CHECK(consumer.consume(order, add_effect).outcome == duplicate);
  CHECK(db.effects_of("order123") == 1);
}

TEST_CASE("a message whose handler deletes its own claim is not consumed") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  SUBCASE("without a result") {
    CHECK(thrown_by([&] { (void)consumer.consume(order, delete_claim); }) == "transaction_lost");
  }
  SUBCASE("with a result") {
    CHECK(thrown_by([&] {
            (void)consumer.consume(order, [](soci::session& sql, Delivery& delivery) {
              delivery.store("result");
              delete_claim(sql, delivery);
            });
          }) == "transaction_lost");
  }
  SUBCASE("it gives the claim another token instead") {
    CHECK(thrown_by([&] {
            (void)consumer.consume(order, [](soci::session& sql, Delivery& delivery) {
              add_effect(sql, delivery);
              sql << "update txinbox_consumed_message set attempt_token = " +
                         here<std::string>("x'00'", "'0123456789abcdef'", "'00000000-0000-0000-0000-000000000001'");
            });
          }) == "transaction_lost");
  }
  check_runs_again(db, consumer);
}

TEST_CASE("a handler that deletes its own claim on a session of the caller's is noticed") {
  const EffectDatabase db;
  const auto sql = db.session();
  TxConsumer consumer(*sql, "svc");
  CHECK(thrown_by([&] { (void)consumer.consume(order, delete_claim); }) == "transaction_lost");
  check_runs_again(db, consumer);
}

TEST_CASE("in a batch, a handler that deletes its own claim fails only its own message") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  int runs_of_b = 0;
  const auto results = consumer.consume_batch(
      messages_of({"a", "order123", "b"}),
      [&](soci::session& sql, Delivery& delivery) {
        if (delivery.message().business_key == "b") ++runs_of_b;
        delivery.message().business_key == "order123" ? delete_claim(sql, delivery) : add_effect(sql, delivery);
      },
      OnFailure::skip);
  CHECK(outcomes(results) == Outcomes{consumed, Outcome::failed, consumed});
  CHECK(db.effects_of("a") == 1);
  CHECK(db.effects_of("b") == 1);
  CHECK(runs_of_b == 2);  // without and with savepoints: the savepoint of the other message has found it
  check_runs_again(db, consumer);
}

// Row-level security is often done so. The role need not have any right on the tables of the inbox.
TEST_CASE("a handler may take a role that cannot read the inbox" * doctest::skip(!on_postgresql())) {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc", {.max_attempts = 1});
  for (const char* take : {"set local role pg_monitor", "set role pg_monitor",
                           "select pg_catalog.set_config('role', 'pg_monitor', true)"}) {
    CAPTURE(take);
    for (const std::string key : {"1", "2"}) {
      CHECK(consumer
                .consume({.business_key = take + key},
                         [&](soci::session& sql, Delivery& delivery) {
                           add_effect(sql, delivery);
                           sql << take;
                         })
                .outcome == consumed);
    }
  }
  CHECK(db.effects() == 6);
  // One message fails, so each of the others gets a savepoint. A large batch is confirmed in several statements.
  std::vector<Message> messages;
  for (int i = 0; i < 1200; ++i) messages.push_back({.business_key = std::to_string(1000 + i) + std::string(240, 'x')});
  for (const bool one_fails : {true, false}) {
    CAPTURE(one_fails);
    TxConsumer of_batch(pool, one_fails ? "failing" : "batch");
    const std::span batch(messages);
    const auto results = of_batch.consume_batch(
        one_fails ? batch.first(3) : batch,
        [&](soci::session& sql, Delivery& delivery) {
          sql << "set local role pg_monitor";
          if (one_fails && delivery.index() == 1) throw std::runtime_error("no");
        },
        OnFailure::skip);
    CHECK(results.front().outcome == consumed);
    CHECK(results.back().outcome == consumed);
  }
}

// The claims and results of a large batch are confirmed in several statements before the commit.
TEST_CASE("in a large batch, a handler for all messages that deletes a claim does not consume it") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  std::vector<Message> messages;
  for (int i = 0; i < 1200; ++i) {
    messages.push_back({.business_key = "k" + std::to_string(1000 + i) + std::string(240, 'x')});
  }
  const std::string first = messages.front().business_key;
  const BatchHandler handler = [&](soci::session& sql, std::span<Delivery> deliveries) {
    for (const Delivery& each : deliveries) {
      if (each.message().business_key == first) {
        sql << "delete from txinbox_consumed_message where business_key = '" + first + "'";
      }
    }
  };
  const auto results = consumer.consume_batch(messages, handler, OnFailure::skip);
  CHECK(results.front().outcome == Outcome::failed);
  CHECK(error_class(results.front().error) == "transaction_lost");
  CHECK(results.back().outcome == consumed);
  CHECK(db.claims() == 1199);
}

TEST_CASE("without a claim, an error of the COMMIT is not reported as a lost transaction" *
          doctest::skip(!on_postgresql())) {
  const EffectDatabase db;
  db.run("create table parent (id integer primary key)");
  db.run("create table child (id integer references parent deferrable initially deferred)");
  const auto sql = db.session();
  CHECK(thrown_by([&] {
          Transaction transaction(*sql);
          *sql << "insert into child values (1)";
          transaction.commit();
        }) == "other");
}

}  // namespace
}  // namespace txinbox::test
