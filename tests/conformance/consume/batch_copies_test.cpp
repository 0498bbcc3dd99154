// Several messages of a batch have the same key, and the first of them was not consumed.

#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/outcomes.hpp"
#include "support/sql_time.hpp"

namespace txinbox::test {
namespace {

struct Copies {
  EffectDatabase db;
  Pool pool = db.pool(2);

  /// Makes a key's row one of a lease that has expired. Its content is "A".
  void expire_lease(const std::string& key) {
    (void)TxConsumer(pool, "svc").consume({.business_key = key, .content = "A"}, [](soci::session&) {});
    db.run(
        "update txinbox_consumed_message set state = 'consuming', lease_owner = 'other', lease_fence = 1, "
        "lease_expires_at = " +
        sql_time(-std::chrono::hours(1)));
  }
};

TEST_CASE("if the failure of the first copy parks the key, the handlers of the other copies do not run") {
  Copies c;
  TxConsumer consumer(c.pool, "svc", {.max_attempts = 1});
  const auto messages = messages_of({"good", "bad", "bad", "bad", "last"});
  const auto results = consumer.consume_batch(
      messages,
      [&](soci::session& sql, Delivery& d) {
        add_effect(sql, d);
        if (d.message().business_key != "bad") return;
        CHECK(d.index() == 1);
        throw std::runtime_error("no stock");
      },
      OnFailure::skip);
  CHECK(outcomes(results) == Outcomes{consumed, parked, parked, parked, consumed});
  CHECK(results[1].error);
  CHECK(!results[2].error);
  CHECK(c.db.number("select attempts from txinbox_failed_message") == 1);
  CHECK(c.db.effects() == 2);
}

TEST_CASE("a copy of a rejected message is parked, also if its handler would succeed") {
  Copies c;
  TxConsumer consumer(c.pool, "svc");
  const auto results = consumer.consume_batch(
      messages_of({"bad", "bad"}),
      [](soci::session& sql, Delivery& d) {
        if (d.index() == 0) throw Error(ErrorCode::rejected, "not valid");
        add_effect(sql, d);
      },
      OnFailure::skip);
  CHECK(outcomes(results) == Outcomes{parked, parked});
  CHECK(c.db.claim_of("bad") == "parked");
  CHECK(c.db.effects() == 0);
}

TEST_CASE("a copy takes over an expired lease that an earlier copy with other content could not take over") {
  Copies c;
  c.expire_lease("k");
  TxConsumer consumer(c.pool, "svc");
  const std::vector<Message> messages{{.business_key = "a"},
                                      {.business_key = "k", .content = "B"},
                                      {.business_key = "k", .content = "A"},
                                      {.business_key = "z"}};
  CHECK(outcomes(consumer.consume_batch(messages, add_effect)) == Outcomes{consumed, conflict, consumed, consumed});
  CHECK(c.db.claim_of("k") == "consumed");
}

TEST_CASE("a batch reports a lease as taken over only if the message was consumed") {
  for (const bool refuses : {false, true}) {
    CAPTURE(refuses);
    Copies c;
    c.expire_lease("k");
    int taken_over = 0;
    TxConsumer consumer(c.pool, "svc", {.listeners = {on_event([&](const Event& e) {
                                          taken_over += e.type == EventType::lease_taken_over ? 1 : 0;
                                        })}});
    const std::vector<Message> messages{{.business_key = "a"}, {.business_key = "k", .content = "A"}};
    (void)consumer.consume_batch(messages, [&](soci::session&, Delivery& d) {
      if (d.message().business_key == "a") return;
      if (refuses) d.refuse("no");
      throw std::runtime_error("no stock");
    });
    CHECK(taken_over == (refuses ? 1 : 0));
  }
}

TEST_CASE("a handler for the whole batch that has an error of the environment fails the message that causes it") {
  Copies c;
  TxConsumer consumer(c.pool, "svc", {.max_attempts = 1});
  const BatchHandler handler = [](soci::session& sql, std::span<Delivery> deliveries) {
    for (Delivery& each : deliveries) {
      add_effect(sql, each);
      if (each.message().business_key == "c") throw std::bad_alloc();
    }
  };
  const auto results = consumer.consume_batch(messages_of({"a", "b", "c", "d", ""}), handler, OnFailure::skip);
  CHECK(outcomes(results) == Outcomes{consumed, consumed, failed, not_run, not_run});
  CHECK(c.db.effects() == 2);
}

TEST_CASE("with count_starts, what the first handler throws is in the result of its message") {
  Copies c;
  TxConsumer consumer(c.pool, "svc", {.count_starts = true});
  const auto results = consumer.consume_batch(messages_of({"a", "b"}), [](soci::session&, Delivery&) {
    throw Error(ErrorCode::invalid_argument, "wrong use");
  });
  CHECK(outcomes(results) == Outcomes{failed, not_run});
  CHECK(code_of(results[0].error) == ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace txinbox::test
