// The loop between a broker and a consumer: messages that cannot be consumed.

#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/inspect.hpp>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/eventually.hpp"
#include "support/memory_broker.hpp"
#include "support/run_kit.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

TEST_CASE("a message that cannot be consumed is a dead letter with a reason, and the next message is consumed") {
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
  publish(R"({"no": "postpones"})");
  publish(R"({"no": "good"})");
  publish(R"({"no": "good", "amount": 2})");
  MemorySource source(broker);
  int postponed = 0;
  const auto message_of = [key = key_from("/no")](const Incoming& incoming) {
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
        if (delivery.message().business_key != "postpones") return;
        if (++postponed < 3) throw RetryLater(std::chrono::milliseconds(1));
        throw Error(ErrorCode::rejected, "never");
      },
      until_idle());
  CHECK(summary.consumed == 1);
  CHECK(summary.dead_letters == 10);
  CHECK(broker.acknowledged() == 11);
  const auto letters = broker.letters();
  REQUIRE(letters.size() == 10);
  std::map<std::string, int> reasons;
  for (const auto& letter : letters) {
    ++reasons[letter.reason];
    CHECK(letter.consumer == "order-service");
    if (letter.reason == "parked") CHECK(letter.business_key == "parks");
    const int failures = letter.reason == "parked" ? 2 : letter.reason == "rejected" ? 1 : 0;
    CHECK(letter.failures == failures);
    if (letter.reason == "conflict") CHECK(letter.business_key == "good");
  }
  CHECK(letters[0].reason == "unreadable");  // not JSON
  CHECK(letters[0].error_class == "unreadable");
  CHECK(letters[3].reason == "unreadable");  // no body
  CHECK(letters[4].reason == "unreadable");
  CHECK(letters[4].error_class == "std::logic_error");
  CHECK(reasons == std::map<std::string, int>{
                       {"conflict", 1}, {"invalid_key", 3}, {"parked", 1}, {"rejected", 2}, {"unreadable", 3}});
  CHECK(db.effects() == 1);
}

TEST_CASE("an event of a retry has no reason, also if the message has become a dead letter meanwhile") {
  EffectDatabase db;
  Pool pool = db.pool();
  std::array<std::atomic<int>, 2> runs{};
  const auto number_of = [](std::string_view key) { return key == "a" ? 0UL : 1UL; };
  std::map<std::pair<RunEventType, std::string>, int> events;
  bool waited = false;
  const auto listener = on_event([&](const RunEvent& event) {
    if (event.business_key.empty()) return;
    ++events[{event.type, std::string(event.reason)}];
    if (std::exchange(waited, true)) return;
    // Meanwhile the other message is rejected. The event of its first failure comes after this one.
    eventually([&] { return runs.at(1 - number_of(event.business_key)) == 2; });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  TxConsumer consumer(pool, "order-service", {.listeners = {listener}});
  MemoryBroker broker(2);
  broker.publish(0, {.body = "a"});
  broker.publish(1, {.body = "b"});
  MemorySource source(broker);
  RunOptions options = until_idle();
  options.workers = 2;
  options.batch = 1;
  (void)run(
      source, consumer, body_is_key,
      [&](soci::session&, Delivery& delivery) {
        if (++runs.at(number_of(delivery.message().business_key)) == 1) throw std::runtime_error("not yet");
        throw Error(ErrorCode::rejected, "never");
      },
      options);
  CHECK(events == decltype(events){{{RunEventType::retry, ""}, 2}, {{RunEventType::dead_letter, "rejected"}, 2}});
}

TEST_CASE("a message without the header of its key is a dead letter, and the next message is consumed") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");
  MemoryBroker broker(1);
  broker.publish(0, {.body = "none"});
  broker.publish(0, {.body = "another", .key = "record", .headers = {{"CE_ID", "1"}}});
  broker.publish(0, {.body = "empty", .headers = {{"ce_id", ""}}});
  broker.publish(0, {.body = "two values", .headers = {{"ce_id", "1"}, {"ce_id", "2"}}});
  broker.publish(0, {.body = "good", .headers = {{"other", "0"}, {"ce_id", "1"}, {"ce_id", "1"}}});
  broker.publish(0, {.body = "a tombstone", .headers = {{"ce_id", "3"}}, .has_body = false});
  MemorySource source(broker);
  const RunSummary summary = run(source, consumer, key_from("@header:ce_id"), add_effect, until_idle());
  CHECK(summary.consumed == 2);  // the key of a tombstone is not in its body
  CHECK(summary.dead_letters == 4);
  CHECK(broker.acknowledged() == 6);
  const auto letters = broker.letters();
  REQUIRE(letters.size() == 4);
  for (const auto& letter : letters) {
    CHECK(letter.reason == "invalid_key");
    CHECK(letter.business_key.empty());
  }
  CHECK(letters[0].body == "none");
  CHECK(letters[1].body == "another");
  CHECK(letters[2].body == "empty");
  CHECK(letters[3].body == "two values");
  CHECK(db.effects() == 2);
  CHECK(db.effects_of("1") == 1);
  CHECK(db.effects_of("3") == 1);
}

TEST_CASE("a message whose id is not UTF-8 is consumed, and its id is in hexadecimal") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");
  MemoryBroker broker(1);
  broker.publish(0, {.body = "good"});
  MemorySource source(broker);
  const RunSummary summary = run(
      source, consumer,
      [](const Incoming& incoming) {
        return Message{.business_key = std::string(incoming.body), .message_id = "\xff\x01"};
      },
      add_effect, until_idle());
  CHECK(summary.consumed == 1);
  CHECK(summary.dead_letters == 0);
  auto connection = pool.acquire();
  const auto row = find_message(connection, "order-service", "good");
  REQUIRE(row.has_value());
  CHECK(row->message_id == "0xff01");
}

TEST_CASE("a message whose handler adds an invalid message to the outbox is a dead letter, and does not end the run") {
  EffectDatabase db;
  Pool pool = db.pool();
  const auto handler = [](soci::session& sql, Delivery& delivery) {
    add_effect(sql, delivery);
    const bool bad = delivery.message().business_key == "bad";
    Outbox::add(sql, {.topic = "t", .key = bad ? "\xff" : "k", .payload = "p"});
  };
  for (const int max_attempts : {0, 1}) {
    CAPTURE(max_attempts);
    TxConsumer consumer(pool, "svc" + std::to_string(max_attempts), {.max_attempts = max_attempts});
    MemoryBroker broker(1);
    for (const char* key : {"a", "bad", "b"}) broker.publish(key);
    MemorySource source(broker);
    const RunSummary summary = run(source, consumer, body_is_key, handler, until_idle());
    CHECK(summary.consumed == 2);
    REQUIRE(broker.letters().size() == 1);
    CHECK(broker.letters()[0].reason == (max_attempts == 0 ? "invalid_message" : "parked"));
    CHECK(broker.acknowledged() == 3);
  }
  CHECK(db.number("select count(*) from txinbox_failed_message where last_error = 'invalid_message'") == 2);
  CHECK(db.number("select count(*) from txinbox_outbox_message") == 4);
  CHECK(db.effects() == 4);
}

TEST_CASE("no later message is acknowledged before the broker has confirmed a dead letter") {
  EffectDatabase db;
  Pool pool = db.pool();
  MemoryBroker broker(1);
  for (int i = 0; i < 10; ++i) broker.publish(i == 3 ? "" : numbered("order", i));
  broker.refuse_dead_letters(true);
  MemorySource source(broker);
  RunOptions options = until_idle();
  int refused = 0;
  std::size_t acknowledged_before = 0;
  const auto listener = on_event([&](const RunEvent& event) {
    if (event.type != RunEventType::dead_letter_failed || ++refused != 3) return;
    CHECK(event.reason == "invalid_key");
    acknowledged_before = broker.acknowledged();
    broker.refuse_dead_letters(false);
  });
  TxConsumer consumer(pool, "order-service", {.listeners = {listener}});
  const RunSummary summary = run(source, consumer, body_is_key, add_effect, options);
  CHECK(refused >= 3);
  CHECK(acknowledged_before == 3);
  CHECK(summary.dead_letters == 1);
  CHECK(broker.acknowledged() == 10);
  CHECK(db.effects() == 9);
}

TEST_CASE("a function can get the dead letters instead of the broker, and run calls it again if it throws") {
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

TEST_CASE("committed messages are acknowledged before a dead letter is published") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");
  MemoryBroker broker(0);
  broker.publish("good");
  broker.publish("bad");
  MemorySource source(broker, false);
  RunOptions options = until_idle();
  options.dead_letter = [&](const DeadLetter& letter) {
    CHECK(letter.business_key == "bad");
    CHECK(broker.acknowledged() == 1);
  };
  const auto handler = [](soci::session& sql, Delivery& delivery) {
    if (delivery.message().business_key == "bad") throw Error(ErrorCode::rejected, "bad");
    add_effect(sql, delivery);
  };
  CHECK(run(source, consumer, body_is_key, handler, options).dead_letters == 1);
  CHECK(broker.acknowledged() == 2);
  CHECK(db.effects() == 1);
}

}  // namespace
}  // namespace txinbox::test
