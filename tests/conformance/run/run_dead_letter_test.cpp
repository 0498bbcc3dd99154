// The loop between a broker and a consumer: messages that cannot be consumed.

#include <map>
#include <stdexcept>
#include <string>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/memory_broker.hpp"
#include "support/run_kit.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

TEST_CASE("what cannot be consumed is a dead letter with its reason, and the next one is consumed") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service", {.max_attempts = 2});
  MemoryBroker broker(1);
  const auto publish = [&](std::string body, bool has_body = true) {
    broker.publish(0, {.body = std::move(body), .has_body = has_body});
  };
  publish("no json");
  publish(R"({"no": ""})");
  publish(R"({"other": 1})");
  publish("", false);
  publish("");
  publish(R"({"no": ")" + std::string(256, 'x') + R"("})");
  publish(R"({"no": "parks"})");
  publish(R"({"no": "rejects"})");
  publish(R"({"no": "good"})");
  publish(R"({"no": "good", "amount": 2})");
  MemorySource source(broker);
  const auto message_of = [key = key_from_json("/no")](const Incoming& incoming) {
    if (incoming.body.empty() && incoming.has_body) throw std::logic_error("an empty body");
    Message message = key(incoming);
    message.content = incoming.body;
    return message;
  };
  const RunSummary summary = run(
      source, consumer, message_of,
      [&](soci::session& sql, Delivery& delivery) {
        add_effect(sql, delivery);
        if (delivery.message().business_key == "parks") throw std::runtime_error("always");
        if (delivery.message().business_key == "rejects") throw Error(ErrorCode::rejected, "never");
      },
      until_idle());
  CHECK(summary.consumed == 1);
  CHECK(summary.dead_letters == 9);
  CHECK(broker.acknowledged() == 10);
  const auto letters = broker.letters();
  REQUIRE(letters.size() == 9);
  std::map<std::string, int> reasons;
  for (const auto& letter : letters) {
    ++reasons[letter.reason];
    CHECK(letter.consumer == "order-service");
    if (letter.reason == "parked") CHECK(letter.business_key == "parks");
    if (letter.reason == "rejected") CHECK(letter.business_key == "rejects");
    if (letter.reason == "conflict") CHECK(letter.business_key == "good");
    if (letter.reason == "unreadable") CHECK(letter.error_class == "std::logic_error");
  }
  CHECK(reasons == std::map<std::string, int>{
                       {"conflict", 1}, {"invalid_key", 5}, {"parked", 1}, {"rejected", 1}, {"unreadable", 1}});
  CHECK(db.effects() == 1);
}

TEST_CASE("nothing is acknowledged past a dead letter that the broker has not confirmed") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");
  MemoryBroker broker(1);
  for (int i = 0; i < 10; ++i) broker.publish(i == 3 ? "" : numbered("order", i));
  broker.refuse_dead_letters(true);
  MemorySource source(broker);
  RunOptions options = until_idle();
  int refused = 0;
  std::size_t acknowledged_before = 0;
  options.observer = [&](const RunEvent& event) {
    if (event.type != RunEventType::dead_letter_failed || ++refused != 3) return;
    CHECK(event.reason == "invalid_key");
    acknowledged_before = broker.acknowledged();
    broker.refuse_dead_letters(false);
  };
  const RunSummary summary = run(source, consumer, body_is_key, add_effect, options);
  CHECK(refused >= 3);
  CHECK(acknowledged_before == 3);
  CHECK(summary.dead_letters == 1);
  CHECK(broker.acknowledged() == 10);
  CHECK(db.effects() == 9);
}

TEST_CASE("a function can take the dead letters instead of the broker, and is called again if it throws") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");
  MemoryBroker broker(0);
  broker.publish("");
  broker.publish("order");
  MemorySource source(broker, false);
  CHECK(thrown_by([&] { (void)run(source, consumer, body_is_key, add_effect, until_idle()); }) == "invalid_argument");
  RunOptions options = until_idle();
  int calls = 0;
  options.dead_letter = [&](const DeadLetter& letter) {
    CHECK(letter.reason == "invalid_key");
    if (++calls < 3) throw std::runtime_error("disk full");
  };
  CHECK(run(source, consumer, body_is_key, add_effect, options).dead_letters == 1);
  CHECK(calls == 3);
  CHECK(broker.acknowledged() == 2);
}

}  // namespace
}  // namespace txinbox::test
