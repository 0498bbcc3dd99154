// Delivery::refuse: the handler's SQL is rolled back, and the answer is stored.

#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/failed_messages.hpp>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/effects.hpp"
#include "support/outcomes.hpp"
#include "support/proxy.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

const Message order{.business_key = "order123", .content = "10 EUR"};

void refuse(soci::session& sql, Delivery& delivery) {
  add_effect(sql, delivery);
  delivery.refuse("402 " + delivery.message().business_key);
}

void must_not_run(soci::session&, Delivery&) { FAIL("a handler ran that must not run"); }

void check_refused(const Result& result, const std::string& answer) {
  CHECK(result.outcome == consumed);
  CHECK(result.refused);
  CHECK(result.stored == answer);
  CHECK_FALSE(result.error);
  CHECK(action_for(result) == Action::acknowledge);
}

void check_replayed(const Result& result, const std::string& answer) {
  CHECK(result.outcome == duplicate);
  CHECK_FALSE(result.refused);
  CHECK(result.stored == answer);
}

TEST_CASE("a refusal leaves no rows of the handler, counts no failure, and is returned to duplicates") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  for (const bool count_starts : {false, true}) {
    TxConsumer consumer(pool, count_starts ? "counting" : "svc", {.max_attempts = 1, .count_starts = count_starts});
    check_refused(consumer.consume(order, refuse), "402 order123");
    check_replayed(consumer.consume(order, must_not_run), "402 order123");
    CHECK(consumer.consume({.business_key = "order123", .content = "11 EUR"}, must_not_run).outcome == conflict);
  }
  CHECK(db.effects() == 0);
  CHECK(db.claim_of("order123", " and consumer = 'svc'") == "consumed");
  CHECK(list_failed(*db.session()).empty());
}

TEST_CASE("a refusal works on a caller's session, and does not change its settings") {
  const EffectDatabase db;
  const auto sql = db.session();
  const std::string before = db.settings_of(*sql);
  TxConsumer consumer(*sql, "svc");
  check_refused(consumer.consume(order, refuse), "402 order123");
  check_replayed(consumer.consume(order, must_not_run), "402 order123");
  CHECK(db.settings_of(*sql) == before);
  CHECK(db.effects() == 0);
}

TEST_CASE("a message is refused even if its handler catches all exceptions") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  const auto handler = [](soci::session& sql, Delivery& delivery) {
    try {
      refuse(sql, delivery);
    } catch (const std::exception&) {
      FAIL("a refusal must not be a std::exception");
    } catch (...) {
      delivery.store("402 overwritten");
    }
  };
  check_refused(consumer.consume(order, handler), "402 overwritten");
  CHECK(db.effects() == 0);
}

TEST_CASE("in a batch, refused messages leave no rows of their handlers, and the others take effect") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  const auto handler = [](soci::session& sql, Delivery& delivery) {
    add_effect(sql, delivery);
    if (delivery.message().business_key[0] == 'r') refuse(sql, delivery);
    delivery.store("201 " + delivery.message().business_key);
  };
  for (const OnFailure on_failure : {OnFailure::stop, OnFailure::skip}) {
    const std::string run = on_failure == OnFailure::stop ? "1" : "2";
    const auto messages = messages_of({"a" + run, "r" + run, "b" + run, "r" + run, "rr" + run});
    const auto results = consumer.consume_batch(messages, handler, on_failure);
    CHECK(outcomes(results) == Outcomes{consumed, consumed, consumed, duplicate, consumed});
    check_refused(results[1], "402 r" + run);
    check_replayed(results[3], "402 r" + run);
    check_refused(results[4], "402 rr" + run);
    CHECK(results[0].stored == "201 a" + run);
    CHECK_FALSE(results[0].refused);
    const auto again = consumer.consume_batch(messages, must_not_run, on_failure);
    for (std::size_t i = 0; i < again.size(); ++i) check_replayed(again[i], results[i].stored.value());
    CHECK(db.effects_of("a" + run) == 1);
    CHECK(db.effects_of("b" + run) == 1);
    CHECK(db.effects_of("r" + run) + db.effects_of("rr" + run) == 0);
  }
  const auto alone = consumer.consume_batch(messages_of({"r"}), handler);
  check_refused(alone[0], "402 r");
}

TEST_CASE("if a handler commits and then refuses its message, the claim is torn or the commit is refused") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  const auto handler = [](soci::session& sql, Delivery& delivery) {
    add_effect(sql, delivery);
    sql << "commit";
    delivery.refuse("402");
  };
  const std::string thrown = thrown_by([&] { (void)consumer.consume(order, handler); });
  CHECK(thrown == "transaction_lost");
  CHECK(db.effects() == (pool_refuses_foreign_commit() ? 0 : 1));
  CHECK(db.claim_of("order123") == (pool_refuses_foreign_commit() ? "none" : "torn"));
}

// One by one, the refusal is kept in a transaction of its own. So it is in a batch. A handler that really commits also
// commits the claim of the message before it.
TEST_CASE("in a batch, a handler that ends the transaction and refuses has the result that it has one by one") {
  for (const char* end : {"rollback", "commit"}) {
    for (const bool on_session : {false, true}) {
      CAPTURE(end);
      CAPTURE(on_session);
      const EffectDatabase db;
      Pool pool = db.pool(1);
      const auto sql = db.session();
      const auto consumer = [&](const char* name) {
        return on_session ? TxConsumer(*sql, name) : TxConsumer(pool, name);
      };
      const Handler handler = [&](soci::session& session, Delivery& delivery) {
        add_effect(session, delivery);
        if (delivery.message().business_key != "b") return;
        try {
          session << end;
        } catch (const soci::soci_error&) {  // the commit is refused
        }
        delivery.refuse("402 b");
      };
      auto single = consumer("single");
      const std::string thrown = thrown_by([&] {
        const Result result = single.consume({.business_key = "b"}, handler);
        CHECK(result.refused);
        CHECK(result.stored == "402 b");
      });
      const BatchHandler at_once = [&](soci::session& session, std::span<Delivery> deliveries) {
        for (Delivery& each : deliveries) handler(session, each);
      };
      const auto check = [&](TxConsumer& batch, const std::vector<Result>& results, bool in_parts) {
        if (in_parts) CHECK(results[2].outcome == consumed);
        if (thrown == "nothing") {
          if (in_parts) CHECK(results[0].outcome == consumed);
          check_refused(results[1], "402 b");
          check_replayed(batch.consume({.business_key = "b"}, must_not_run), "402 b");
        } else {
          CHECK(thrown == "transaction_lost");
          CHECK(error_class(results[1].error) == thrown);
          CHECK(batch.consume({.business_key = "b"}, must_not_run).outcome == parked);
        }
      };
      const auto messages = messages_of({"a", "b", "c"});
      auto batch = consumer("batch");
      check(batch, batch.consume_batch(messages, handler, OnFailure::skip), true);
      auto set = consumer("set");
      check(set, set.consume_batch(messages, at_once, OnFailure::skip), false);
      auto pair = consumer("pair");
      check(pair, pair.consume_batch(messages, BatchHandlers{at_once, handler}, OnFailure::skip), false);
    }
  }
}

TEST_CASE("a refusal is stored exactly once when replies are lost" * doctest::skip(!has_server())) {
  for (int spared = 0; spared <= 8; ++spared) {
    CAPTURE(spared);
    const EffectDatabase db;
    Proxy proxy(db.url());
    Pool pool = open_pool(proxy.url(), {.connections = 1});
    TxConsumer consumer(pool, "svc", {.retry = {.initial_backoff = std::chrono::milliseconds(1)}});
    int runs = 0;
    const Result result = consumer.consume(order, [&](soci::session& sql, Delivery& delivery) {
      if (++runs == 1) proxy.lose_reply(spared);
      refuse(sql, delivery);
    });
    check_refused(result, "402 order123");
    check_replayed(consumer.consume(order, must_not_run), "402 order123");
    CHECK(db.effects() == 0);
  }
}

TEST_CASE("a handler of a LeaseConsumer cannot refuse") {
  const EffectDatabase db;
  Pool pool = db.pool(2);
  LeaseConsumer consumer(pool, "svc");
  CHECK(thrown_by([&] { (void)consumer.consume(order, [](Lease& lease) { lease.delivery().refuse("402"); }); }) ==
        "invalid_argument");
}

}  // namespace
}  // namespace txinbox::test
