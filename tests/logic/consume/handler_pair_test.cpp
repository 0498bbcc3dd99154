// BatchHandlers with both handlers: a handler for all messages of a batch, and a handler for each message. Both give
// the same results.

#include <algorithm>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/batch_kit.hpp"
#include "support/effects.hpp"
#include "support/memory_broker.hpp"
#include "support/outcomes.hpp"
#include "support/run_kit.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using Keys = std::vector<std::string>;

/// Handlers that write the effects of their messages, and then fail for some of them. Each handler records its calls.
class Pair {
 public:
  explicit Pair(std::set<std::string> bad = {}) : bad_(std::move(bad)) {}

  BatchHandlers handlers() {
    return {[this](soci::session& sql, Deliveries deliveries) {
              Keys& keys = at_once.emplace_back();
              for (Delivery& each : deliveries) keys.push_back(each.message().business_key);
              for (Delivery& each : deliveries) handle(sql, each);
            },
            [this](soci::session& sql, Delivery& delivery) {
              alone.push_back(delivery.message().business_key);
              handle(sql, delivery);
            }};
  }

  std::vector<Keys> at_once;
  Keys alone;

 private:
  void handle(soci::session& sql, Delivery& delivery) {
    add_effect(sql, delivery);
    if (bad_.contains(delivery.message().business_key)) throw std::runtime_error("bad");
  }

  const std::set<std::string> bad_;
};

}  // namespace

TEST_CASE("for two or more new messages, the handler for all runs once") {
  on_each_connection([](const EffectDatabase& db, TxConsumer& consumer) {
    Pair pair;
    CHECK(outcomes(consumer.consume_batch(messages_of({"z", "a", "z"}), pair.handlers())) ==
          Outcomes{consumed, consumed, duplicate});
    CHECK(pair.at_once == std::vector<Keys>{{"z", "a"}});
    CHECK(pair.alone.empty());
    CHECK(db.effects() == 2);
  });
}

TEST_CASE("for one new message, the handler for each runs") {
  on_each_connection([](const EffectDatabase& db, TxConsumer& consumer) {
    (void)consumer.consume_batch(messages_of({"a", "b"}), Pair().handlers());
    Pair pair;
    CHECK(outcomes(consumer.consume_batch(messages_of({"a", "c", "b", "c"}), pair.handlers())) ==
          Outcomes{duplicate, consumed, duplicate, duplicate});
    CHECK(pair.at_once.empty());
    CHECK(pair.alone == Keys{"c"});
    CHECK(db.effects() == 3);
  });
}

TEST_CASE("if the handler for all fails, the handler for each runs, in one transaction") {
  on_each_connection([](const EffectDatabase& db, TxConsumer& consumer) {
    Pair pair({"b", "d", "e"});
    const auto results =
        consumer.consume_batch(messages_of({"a", "b", "c", "d", "e", "f"}), pair.handlers(), OnFailure::skip);
    CHECK(outcomes(results) == Outcomes{consumed, failed, consumed, failed, failed, consumed});
    CHECK_THROWS_AS(std::rethrow_exception(results[1].error), std::runtime_error);
    CHECK(pair.at_once.size() == 1);
    CHECK(pair.alone == Keys{"a", "b", "c", "d", "e", "f"});
    CHECK(db.effects() == 3);
    CHECK(db.claims() == 3);
    CHECK(db.number("select count(distinct attempt_token) from txinbox_consumed_message") == 1);
  });
}

TEST_CASE("with stop, the handler for each runs up to the message that fails") {
  on_each_connection([](const EffectDatabase& db, TxConsumer& consumer) {
    Pair pair({"b"});
    const auto messages = messages_of({"a", "b", "c"});
    CHECK(outcomes(consumer.consume_batch(messages, pair.handlers())) == Outcomes{consumed, failed, not_run});
    CHECK(pair.alone == Keys{"a", "b"});
    CHECK(db.effects() == 1);
    CHECK(outcomes(consumer.consume_batch(messages, Pair().handlers())) == Outcomes{duplicate, consumed, consumed});
  });
}

TEST_CASE("after a transient error the handler for all runs again, with the number of its attempt") {
  on_each_connection([](const EffectDatabase& db, TxConsumer& consumer) {
    std::vector<int> attempts;
    const BatchHandlers handlers = {[&](soci::session& sql, Deliveries deliveries) {
                                      attempts.push_back(deliveries.front().attempt());
                                      for (Delivery& each : deliveries) add_effect(sql, each);
                                      if (attempts.size() < 3) throw Error(ErrorCode::acquire_timeout, "busy");
                                    },
                                    [](soci::session&, Delivery&) { FAIL("a handler ran that must not run"); }};
    CHECK(outcomes(consumer.consume_batch(messages_of({"a", "b"}), handlers)) == Outcomes{consumed, consumed});
    CHECK(attempts == std::vector<int>{1, 2, 3});
    CHECK(db.effects() == 2);
  });
}

TEST_CASE("if a refusal ends the handler for all, the handler for each refuses the message") {
  on_each_connection([](const EffectDatabase& db, TxConsumer& consumer) {
    const auto handle = [](soci::session& sql, Delivery& delivery) {
      add_effect(sql, delivery);
      if (delivery.message().business_key == "poor") delivery.refuse("no money");
      delivery.store("done");
    };
    const BatchHandlers handlers = {[&](soci::session& sql, Deliveries deliveries) {
                                      for (Delivery& each : deliveries) handle(sql, each);
                                    },
                                    handle};
    const auto results = consumer.consume_batch(messages_of({"a", "poor", "b"}), handlers);
    CHECK(outcomes(results) == Outcomes{consumed, consumed, consumed});
    CHECK(results[0].stored == "done");
    CHECK(results[1].refused);
    CHECK(results[1].stored == "no money");
    CHECK(db.effects() == 2);
  });
}

TEST_CASE("with count_starts only the handler for each message runs") {
  const EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "svc", {.max_attempts = 2, .count_starts = true});
  Pair pair;
  CHECK(outcomes(consumer.consume_batch(messages_of({"a", "b"}), pair.handlers())) == Outcomes{consumed, consumed});
  CHECK(pair.at_once.empty());
  CHECK(pair.alone == Keys{"a", "b"});
}

TEST_CASE("a pair without one of its handlers is refused") {
  const EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "svc");
  Pair pair;
  const BatchHandlers whole = pair.handlers();
  for (const BatchHandlers& part : {BatchHandlers{}, {*whole.at_once(), Handler()}, {BatchHandler(), *whole.each()}}) {
    CHECK(thrown_by([&] { (void)consumer.consume_batch(messages_of({"a"}), part); }) == "invalid_argument");
  }
}

TEST_CASE("run gives the broker's message to both handlers of a pair") {
  const EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "svc");
  MemoryBroker broker(1);
  for (const char* key : {"a", "b", "bad", "c"}) broker.publish(key);
  MemorySource source(broker);
  Keys at_once;
  Keys alone;
  const BatchHandlers handlers = {[&](soci::session&, Deliveries deliveries) {
                                    for (Delivery& each : deliveries) at_once.emplace_back(each.incoming().body);
                                    throw std::runtime_error("one of them is bad");
                                  },
                                  [&](soci::session& sql, Delivery& delivery) {
                                    alone.emplace_back(delivery.incoming().body);
                                    add_effect(sql, delivery);
                                    if (delivery.incoming().body == "bad") {
                                      throw Error(ErrorCode::rejected, "never");
                                    }
                                  }};
  RunOptions options = until_idle();
  options.dead_letter = [](const DeadLetter&) {};
  const RunSummary summary = run(source, consumer, body_is_key, handlers, options);
  CHECK(summary.consumed == 3);
  CHECK(summary.dead_letters == 1);
  CHECK(db.effects() == 3);
  CHECK_FALSE(at_once.empty());
  CHECK(std::set<std::string>(alone.begin(), alone.end()) == std::set<std::string>{"a", "b", "bad", "c"});
}

}  // namespace txinbox::test
