// One handler for all new messages of a batch. It gives the same guarantees as a handler for each message.

#include <algorithm>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/failed_messages.hpp>
#include <txinbox/txinbox.hpp>

#include "support/batch_kit.hpp"
#include "support/effects.hpp"
#include "support/outcomes.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using Keys = std::vector<std::string>;

Keys keys_of(Deliveries deliveries) {
  Keys keys;
  for (const Delivery& each : deliveries) keys.push_back(each.message().business_key);
  return keys;
}

/// Writes all effects, and then fails if one of the messages has one of these keys.
BatchHandler failing_for(const std::set<std::string>& bad) {
  return [bad](soci::session& sql, Deliveries deliveries) {
    add_effects(sql, deliveries);
    if (std::ranges::any_of(keys_of(deliveries), [&](const auto& key) { return bad.contains(key); })) {
      throw std::runtime_error("bad");
    }
  };
}

void must_not_run(soci::session&, Deliveries) { FAIL("a handler ran that must not run"); }

}  // namespace

TEST_CASE("one handler gets the new messages of a batch: each key once, in their order, with their indices") {
  on_each_connection([](const EffectDatabase& db, TxConsumer& consumer) {
    (void)consumer.consume({.business_key = "old"}, add_effect);
    std::vector<Keys> calls;
    std::vector<std::size_t> places;
    const auto handler = [&](soci::session& sql, Deliveries deliveries) {
      calls.push_back(keys_of(deliveries));
      for (const Delivery& each : deliveries) places.push_back(each.index());
      add_effects(sql, deliveries);
    };
    const auto messages = messages_of({"z", "old", "a", "z", "k"});
    CHECK(outcomes(consumer.consume_batch(messages, handler)) ==
          Outcomes{consumed, duplicate, consumed, duplicate, consumed});
    CHECK(calls == std::vector<Keys>{{"z", "a", "k"}});
    CHECK(places == std::vector<std::size_t>{0, 2, 4});
    CHECK(outcomes(consumer.consume_batch(messages, must_not_run)) ==
          Outcomes{duplicate, duplicate, duplicate, duplicate, duplicate});
    CHECK(consumer.consume_batch({}, BatchHandler(must_not_run)).empty());
    CHECK(db.effects() == 4);
    CHECK(db.claims() == 4);
  });
}

TEST_CASE("an empty handler of a batch is refused") {
  const EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "svc");
  CHECK(thrown_by([&] { (void)consumer.consume_batch(messages_of({"a"}), BatchHandler()); }) == "invalid_argument");
}

TEST_CASE("with stop, messages before the failing one are consumed, and messages after it are not run") {
  on_each_connection([](const EffectDatabase& db, TxConsumer& consumer) {
    const auto messages = messages_of({"a", "b", "c", "d", "e", "bad", "f", "g"});
    const auto results = consumer.consume_batch(messages, failing_for({"bad"}));
    CHECK(outcomes(results) == Outcomes{consumed, consumed, consumed, consumed, consumed, failed, not_run, not_run});
    CHECK_THROWS_AS(std::rethrow_exception(results[5].error), std::runtime_error);
    CHECK(db.effects() == 5);
    CHECK(db.claims() == 5);
    CHECK(outcomes(consumer.consume_batch(messages, add_effects)) ==
          Outcomes{duplicate, duplicate, duplicate, duplicate, duplicate, consumed, consumed, consumed});
    CHECK(db.effects() == 8);
  });
}

TEST_CASE("with skip, only the failing messages fail, at any place in the batch") {
  for (const std::set<std::string>& bad :
       {std::set<std::string>{"a"}, {"h"}, {"c", "d"}, {"a", "e", "h"}, {"a", "b", "c", "d", "e", "f", "g", "h"}}) {
    const EffectDatabase db;
    Pool pool = db.pool();
    TxConsumer consumer(pool, "svc", {.max_attempts = 3});
    const Keys keys = {"a", "b", "c", "d", "e", "f", "g", "h"};
    const auto results = consumer.consume_batch(messages_of(keys), failing_for(bad), OnFailure::skip);
    REQUIRE(results.size() == keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      CAPTURE(keys[i]);
      CHECK(results[i].outcome == (bad.contains(keys[i]) ? failed : consumed));
      CHECK(db.effects_of(keys[i]) == (bad.contains(keys[i]) ? 0 : 1));
    }
    // Even if a message was part of several runs that failed, one failure is counted for it.
    const auto sql = db.session();
    for (const FailedMessage& each : list_failed(*sql)) {
      CHECK(bad.contains(each.business_key));
      CHECK(each.attempts == 1);
    }
    CHECK(list_failed(*sql).size() == bad.size());
  }
}

TEST_CASE("the messages that the handler rejects or postpones are identified, and the others are consumed") {
  on_each_connection([](const EffectDatabase& db, TxConsumer& consumer) {
    const auto results = consumer.consume_batch(
        messages_of({"a", "later", "b", "reject", "c"}),
        [](soci::session& sql, Deliveries deliveries) {
          add_effects(sql, deliveries);
          for (const std::string& key : keys_of(deliveries)) {
            if (key == "later") throw RetryLater(std::chrono::seconds(5));
            if (key == "reject") throw Error(ErrorCode::rejected, "never");
          }
        },
        OnFailure::skip);
    CHECK(outcomes(results) == Outcomes{consumed, Outcome::postponed, consumed, parked, consumed});
    CHECK(results[1].retry_after == std::chrono::seconds(5));
    CHECK(db.effects() == 3);
  });
}

TEST_CASE("each delivery of a batch stores its own result, and may refuse its message") {
  on_each_connection([](const EffectDatabase& db, TxConsumer& consumer) {
    const auto handler = [](soci::session& sql, Deliveries deliveries) {
      add_effects(sql, deliveries);
      for (Delivery& each : deliveries) {
        if (each.message().business_key == "poor") each.refuse("no money");
        if (each.message().business_key != "quiet") each.store("done " + each.message().business_key);
      }
    };
    const auto messages = messages_of({"a", "poor", "quiet", "b", "a"});
    const auto first = consumer.consume_batch(messages, handler);
    CHECK(outcomes(first) == Outcomes{consumed, consumed, consumed, consumed, duplicate});
    CHECK(first[0].stored == "done a");
    CHECK(first[1].refused);
    CHECK_FALSE(first[0].refused);
    const auto again = consumer.consume_batch(messages, must_not_run);
    CHECK(again[0].stored == "done a");
    CHECK(again[1].stored == "no money");
    CHECK_FALSE(again[2].stored);
    CHECK(again[3].stored == "done b");
    CHECK(first[4].stored == "done a");
    CHECK(db.effects_of("poor") == 0);
    CHECK(db.effects() == 3);
  });
}

TEST_CASE("a message is refused even if the handler of the batch catches the exception") {
  on_each_connection([](const EffectDatabase& db, TxConsumer& consumer) {
    const auto results =
        consumer.consume_batch(messages_of({"a", "poor", "b"}), [](soci::session& sql, Deliveries deliveries) {
          for (Delivery& each : deliveries) {
            add_effect(sql, each);
            try {
              if (each.message().business_key == "poor") each.refuse("no money");
            } catch (...) {  // the handler catches all exceptions
            }
          }
        });
    CHECK(outcomes(results) == Outcomes{consumed, consumed, consumed});
    CHECK(results[1].refused);
    CHECK(results[1].stored == "no money");
    CHECK(db.effects_of("poor") == 0);
    CHECK(db.effects() == 2);
  });
}

TEST_CASE("copies with other content within a batch are conflicts") {
  const EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "svc");
  const std::vector<Message> messages = {{.business_key = "a", .content = "1"},
                                         {.business_key = "b", .content = "1"},
                                         {.business_key = "a", .content = "2"}};
  CHECK(outcomes(consumer.consume_batch(messages, add_effects)) == Outcomes{consumed, consumed, conflict});
  CHECK(db.effects() == 2);
}

TEST_CASE("with count_starts the handler of a batch gets one message at a time") {
  const EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "svc", {.max_attempts = 2, .count_starts = true});
  std::vector<Keys> calls;
  const auto results = consumer.consume_batch(messages_of({"a", "b"}), [&](soci::session& sql, Deliveries deliveries) {
    calls.push_back(keys_of(deliveries));
    add_effects(sql, deliveries);
  });
  CHECK(outcomes(results) == Outcomes{consumed, consumed});
  CHECK(calls == std::vector<Keys>{{"a"}, {"b"}});
}

}  // namespace txinbox::test
