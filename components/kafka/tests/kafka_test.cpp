// A Kafka source with a real broker. The consumer runs in this process.

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "kafka_broker.hpp"
#include "support/effects.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

RunOptions until_idle() { return {.backoff = 5ms, .max_backoff = 50ms, .idle_exit = 2s}; }

MessageOf body_is_key() {
  return [](const Incoming& in) {
    return Message{.business_key = std::string(in.body), .message_id = std::string(in.id)};
  };
}

TEST_CASE("Kafka: a handler gets the record as it was sent") {
  KafkaBroker broker;
  (void)broker.create("records");
  broker.publisher().publish("records", {.body = "body",
                                         .key = "k",
                                         .headers = {{"ce_id", "1"}, {"ce_id", "2"}, {"empty", std::nullopt}},
                                         .partition = 1});
  broker.publisher().publish("records", {.body = std::nullopt, .key = "tombstone", .partition = 1});
  broker.publisher().publish("records", {.body = "", .key = "", .partition = 1});
  broker.publisher().publish("records", {.body = "no key", .partition = 1});
  broker.flush();
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "svc");
  const auto source = open_kafka(broker.options("records"));
  std::vector<std::string> seen;
  const RunSummary summary = run(
      *source, consumer,
      [](const Incoming& in) {
        return in.key == "" ? Message{.business_key = "empty"} : key_from("@key")(in);  // the last one has no key
      },
      [&](soci::session& sql, Delivery& delivery) {
        add_effect(sql, delivery);
        const Incoming& in = delivery.incoming();
        seen.push_back(std::string(in.id) + " " + std::string(in.body) + (in.has_body ? "" : "(none)"));
        CHECK(in.lane);
        CHECK(in.sent > std::chrono::system_clock::now() - 1h);
        if (in.body != "body") return;
        REQUIRE(in.headers.size() == 3);
        CHECK(in.header("ce_id") == "1");
        CHECK(in.headers[1].value == "2");
        CHECK(in.header("empty") == "");
      },
      until_idle());
  CHECK(seen == std::vector<std::string>{"records/1@0 body", "records/1@1 (none)", "records/1@2 "});
  CHECK(summary.dead_letters == 1);

  // The dead letter contains the record and the reason.
  KafkaOptions dead = broker.options("records");
  dead.topics = {"records.dead"};
  dead.group = "readers";
  dead.dead_letters = "";
  const auto letters = open_kafka(dead);
  RunOptions options = until_idle();
  options.dead_letter = [](const DeadLetter&) {};
  int found = 0;
  TxConsumer reader(pool, "reader");
  (void)run(
      *letters, reader, key_from("@header:txinbox-origin"),
      [&](soci::session&, Delivery& delivery) {
        ++found;
        const Incoming& in = delivery.incoming();
        CHECK(in.body == "no key");
        CHECK_FALSE(in.key);
        CHECK(in.header("txinbox-reason") == "invalid_key");
        CHECK(in.header("txinbox-error-class") == "invalid_key");
        CHECK(in.header("txinbox-consumer") == "svc");
        CHECK(in.header("txinbox-origin") == "records/1@3");
        CHECK(in.header("txinbox-failures") == "0");
      },
      options);
  CHECK(found == 1);
}

TEST_CASE(
    "Kafka: a message that fails stops its partition only, also while a handler is slower than the broker waits") {
  KafkaBroker broker;
  (void)broker.create("poison");
  for (int i = 0; i < 400; ++i) {
    broker.publisher().publish("poison", {.body = "m" + std::to_string(i), .partition = i % 4});
  }
  broker.flush();
  EffectDatabase db;
  Pool pool = db.pool();
  KafkaOptions kafka = broker.options("poison");
  kafka.properties["max.poll.interval.ms"] = "2000";
  const auto source = open_kafka(kafka);
  std::stop_source stop;
  RunOptions options = until_idle();
  options.idle_exit.reset();
  options.batch = 10;
  options.max_in_flight = 20;
  std::vector<std::string> warnings;
  const auto listener = on_event([&](const RunEvent& event) {
    if (event.type == RunEventType::source && event.source_event->type == SourceEventType::warning) {
      warnings.push_back(event.source_event->text);
    }
    if (event.type == RunEventType::dropped && !stop.stop_requested()) warnings.emplace_back("dropped");
    if (event.type == RunEventType::acknowledged && db.effects() >= 350) stop.request_stop();
  });
  TxConsumer consumer(pool, "svc", {.stop = stop.get_token(), .listeners = {listener}});
  bool was_slow = false;
  (void)run(
      *source, consumer, body_is_key(),
      [&](soci::session& sql, Delivery& delivery) {
        add_effect(sql, delivery);
        const std::string& key = delivery.message().business_key;
        if (key == "m40" && !std::exchange(was_slow, true)) std::this_thread::sleep_for(5s);
        if (key == "m201") throw std::runtime_error("always");  // partition 1 has 50 messages before it
      },
      options);
  CHECK(warnings.empty());
  CHECK(db.effects() >= 350);
  CHECK(db.effects_of("m201") == 0);
  CHECK(db.effects_of("m205") == 0);  // m205 is in the same partition, after m201
  CHECK(db.effects_of("m197") == 1);

  // The group's offset is before the message that failed.
  const auto next = open_kafka(kafka);
  TxConsumer started_again(pool, "svc");
  RunSummary rest = run(*next, started_again, body_is_key(), add_effect, until_idle());
  CHECK(db.effects() == 400);
  CHECK(rest.already_consumed <= 30);  // a batch that was consumed and could not be acknowledged
}

TEST_CASE("Kafka: after a stop, the next consumer begins after the last consumed message") {
  KafkaBroker broker;
  (void)broker.create("stops");
  for (int i = 0; i < 2000; ++i) broker.publish("stops", "m" + std::to_string(i), "k" + std::to_string(i % 50));
  broker.flush();
  EffectDatabase db;
  Pool pool = db.pool();
  int stops = 0;
  std::uint64_t duplicates = 0;
  while (db.effects() < 2000 && stops < 20) {
    std::stop_source stop;
    TxConsumer consumer(pool, "svc", {.stop = stop.get_token()});
    const auto source = open_kafka(broker.options("stops"));
    RunOptions options = until_idle();
    options.batch = 20;
    int left = 300;
    duplicates += run(
                      *source, consumer, body_is_key(),
                      [&](soci::session& sql, Delivery& delivery) {
                        add_effect(sql, delivery);
                        if (--left == 0) stop.request_stop();
                      },
                      options)
                      .already_consumed;
    ++stops;
  }
  CHECK(db.effects() == 2000);
  CHECK(duplicates == 0);
}

TEST_CASE("Kafka: nothing is acknowledged past a dead letter that cannot be published") {
  KafkaBroker broker;
  (void)broker.create("unpublished");
  broker.publisher().create("unpublished.small", 10'000);
  broker.publisher().publish("unpublished", {.body = "bad" + std::string(20'000, 'x'), .partition = 0});
  for (int i = 0; i < 10; ++i) {
    broker.publisher().publish("unpublished", {.body = "m" + std::to_string(i), .partition = 0});
  }
  broker.flush();
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "svc");
  const MessageOf message_of = [](const Incoming& in) {
    if (in.body.starts_with("bad")) throw Error(ErrorCode::invalid_key, "bad");
    return Message{.business_key = std::string(in.body)};
  };
  {
    // The broker refuses a dead letter that is larger than the dead-letter topic allows.
    KafkaOptions kafka = broker.options("unpublished");
    kafka.dead_letters = "unpublished.small";
    const auto source = open_kafka(kafka);
    std::stop_source stop;
    int refused = 0;
    const auto listener = on_event([&](const RunEvent& event) {
      if (event.type == RunEventType::dead_letter_failed && ++refused >= 3 && db.effects() == 10) stop.request_stop();
    });
    TxConsumer stopped(pool, "svc", {.stop = stop.get_token(), .listeners = {listener}});
    const RunSummary summary = run(*source, stopped, message_of, add_effect, until_idle());
    CHECK(refused >= 3);
    CHECK(summary.acknowledged == 0);
  }
  const auto source = open_kafka(broker.options("unpublished"));
  const RunSummary summary = run(*source, consumer, message_of, add_effect, until_idle());
  CHECK(summary.dead_letters == 1);
  CHECK(summary.received == 11);
  CHECK(db.effects() == 10);
}

TEST_CASE("Kafka: a body and a dead letter can have more than 1 MB if the topics allow it") {
  KafkaBroker broker;
  broker.publisher().create("large", 3'000'000);
  broker.publisher().create("large.dead", 3'000'000);
  broker.publisher().create("large.small", 10'000);
  const std::string body(2UL * 1024 * 1024, 'x');
  broker.publisher().publish("large", {.body = body, .key = "bad"});
  broker.publisher().publish("large", {.body = body, .key = std::string(255, 'k')});
  broker.publisher().publish("large", {.body = "small", .key = std::string(256, 'k')});  // too long for the inbox
  broker.flush();
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "svc");
  const Handler handler = [&](soci::session& sql, Delivery& delivery) {
    CHECK(delivery.incoming().body == body);
    if (delivery.message().business_key == "bad") throw Error(ErrorCode::rejected, "no");
    add_effect(sql, delivery);
  };
  {
    // The dead-letter topic has a smaller limit than the topic. Then no later message is acknowledged, and an event
    // tells the operator why.
    KafkaOptions kafka = broker.options("large");
    kafka.dead_letters = "large.small";
    const auto source = open_kafka(kafka);
    std::stop_source stop;
    std::string warning;
    const auto listener = on_event([&](const RunEvent& event) {
      if (event.type == RunEventType::dead_letter_failed && db.effects() == 1) stop.request_stop();
      if (event.type == RunEventType::source && event.source_event->type == SourceEventType::warning) {
        warning = event.source_event->text;
      }
    });
    TxConsumer stopped(pool, "svc", {.stop = stop.get_token(), .listeners = {listener}});
    CHECK(run(*source, stopped, key_from("@key"), handler, until_idle()).acknowledged == 0);
    CHECK_MESSAGE(warning.find("max.message.bytes") != std::string::npos, warning);
  }
  const auto source = open_kafka(broker.options("large"));
  const RunSummary summary = run(*source, consumer, key_from("@key"), handler, until_idle());
  CHECK(summary.dead_letters == 2);
  CHECK(summary.already_consumed == 1);
  CHECK(summary.acknowledged == 3);
}

TEST_CASE("Kafka: a dead letter whose headers do not fit loses the headers of the message, and others keep theirs") {
  KafkaBroker broker;
  broker.publisher().create("large-headers");
  broker.publisher().create("large-headers.unused");
  broker.publisher().create("large-headers.dead", 20'000);
  const auto bad = [&](std::size_t bytes, const char* key) {
    broker.publisher().publish("large-headers", {.body = "x",
                                                 .key = std::string(key) + std::string(256, 'k'),  // too long
                                                 .headers = {{"large", std::string(bytes, 'h')}, {"b", "2"}},
                                                 .partition = 0});
  };
  bad(30'000, "too-large");
  for (int i = 0; i < 10; ++i) bad(5'000, "fits");  // each fits, but not all in one batch
  broker.flush();
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "svc");
  {
    const auto source = open_kafka(broker.options("large-headers"));
    CHECK(run(*source, consumer, key_from("@key"), add_effect, until_idle()).dead_letters == 11);
  }
  KafkaOptions options = broker.options("large-headers.dead");
  options.dead_letters = "large-headers.unused";
  int complete = 0;
  int dropped = 0;
  const MessageOf message_of = [&](const Incoming& in) {
    const bool is_too_large = in.key->starts_with("too-large");
    if (is_too_large && in.header("txinbox-dropped-headers") == "2" && !in.header("b")) ++dropped;
    if (!is_too_large && !in.header("txinbox-dropped-headers") && in.header("b") == "2") ++complete;
    CHECK(in.header("txinbox-reason") == "invalid_key");
    return Message{.business_key = std::string(in.id)};
  };
  const auto source = open_kafka(options);
  CHECK(run(*source, consumer, message_of, add_effect, until_idle()).consumed == 11);
  CHECK(dropped == 1);
  CHECK(complete == 10);
}

TEST_CASE("Kafka: if a topic is missing, run ends with an error that names it") {
  KafkaBroker broker;
  (void)broker.create("there");
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "svc");
  const auto error_of = [&](const KafkaOptions& options) {
    const auto source = open_kafka(options);
    return thrown_by([&] { (void)run(*source, consumer, body_is_key(), add_effect, until_idle()); });
  };
  KafkaOptions missing = broker.options("there");
  missing.topics = {"not-there"};
  CHECK(error_of(missing) == "broker_refused");
  missing = broker.options("there");
  missing.dead_letters = "not-there.dead";
  CHECK(error_of(missing) == "broker_refused");
}

}  // namespace
}  // namespace txinbox::test
