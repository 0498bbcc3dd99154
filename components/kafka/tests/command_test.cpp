// The command consumes from Kafka. It is killed and restarted.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>

#include <doctest/doctest.h>

#include "brokers/bad_deployment_tests.hpp"
#include "brokers/command_tests.hpp"
#include "kafka_broker.hpp"
#include "support/eventually.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("Kafka: consumers that are killed lose nothing and double nothing") {
  KafkaBroker broker;
  survives_kills(broker, "kills");
}

TEST_CASE("Kafka: with --idle-exit the command ends with a status of its own if the broker stays away") {
  KafkaBroker broker;
  ends_if_broker_stays_away(broker, "stays-away");
}

TEST_CASE("Kafka: a broker that dies and comes back loses nothing and doubles nothing") {
  KafkaBroker broker;
  survives_broker_restart(broker, "restarts");
}

TEST_CASE("Kafka: a database server that dies and comes back loses nothing and doubles nothing" *
          doctest::skip(!TestDatabase::can_restart_server())) {
  KafkaBroker broker;
  survives_database_restart(broker, "database");
}

TEST_CASE("Kafka: a broker and a database server that die together lose nothing and double nothing" *
          doctest::skip(!TestDatabase::can_restart_server())) {
  KafkaBroker broker;
  survives_both_restarts(broker, "both");
}

TEST_CASE("Kafka: messages that cannot be consumed become dead letters, and the others are consumed") {
  KafkaBroker broker;
  broker.publisher().create("bad", 3'000'000);  // a record of 1 MiB is larger than the broker's default
  dead_letters_do_not_stop_the_others(broker, "bad");
}

/// With `--key`, the command consumes 20 orders and their copies with four workers. A tombstone and a message without
/// the key become dead letters. A copy has another number in its body, and only the business key is the same.
void consumes_by(const std::string& key, const std::string& topic, const std::string& order) {
  CAPTURE(key);
  const bool is_header = key != "@key";
  KafkaBroker broker;
  OrdersFromBroker t(broker, topic);
  // Everything but the business key is different in each message.
  int other = 0;
  const auto publish = [&](const std::optional<std::string>& body, const std::optional<std::string>& business_key) {
    const std::optional<std::string> different = "other" + std::to_string(other++);
    const auto& header = is_header ? business_key : different;
    Publisher::Record record{.body = body, .key = is_header ? different : business_key};
    if (header) record.headers = {{"ce_id", header}};
    broker.publisher().publish(topic, record);
  };
  publish(std::nullopt, "tombstone");
  publish(OrdersFromBroker::body(9999), std::nullopt);
  for (int i = 0; i < 40; ++i) publish(OrdersFromBroker::body(i), "k" + std::to_string(i % 20));
  broker.flush();
  Command::Arguments words = t.arguments({"--idle-exit", broker.idle_exit(), "--workers", "4", "--order", order});
  std::ranges::replace(words, "/no", key);
  const Ended ended = run(words, t.db.url());
  CHECK_MESSAGE(ended.status == 1, ended.err);
  CHECK_MESSAGE(ended.last_line().starts_with("consumed 20, already consumed 20, dead letters 2, "), ended.last_line());
  CHECK_MESSAGE(occurrences(ended.err, "the message has no body; dead letter (unreadable)") == 1, ended.err);
  CHECK_MESSAGE(
      occurrences(ended.err, "the message has no " + std::string(is_header ? "header ce_id" : "record key")) == 1,
      ended.err);
  CHECK(occurrences(ended.err, "dead letter (invalid_key)") == 1);
  CHECK(t.orders() == 20);
  CHECK(t.taken() == 20);
}

TEST_CASE("Kafka: with --key @key, a tombstone and a message without a key cannot be consumed, and the others can") {
  consumes_by("@key", "by-key", "key");
}

TEST_CASE("Kafka: with --key @header:NAME, a message without the header cannot be consumed, and the others can") {
  consumes_by("@header:ce_id", "by-header", "key");
  consumes_by("order:{@header:ce_id}#{@header:ce_id}", "by-template", "lane");
}

TEST_CASE("Kafka: the memory does not grow with the messages" * doctest::skip(messages_for_memory() == 0)) {
  KafkaBroker broker;
  memory_stays_flat(broker, "memory");
}

TEST_CASE("Kafka: the example consumes each order once") {
  const char* program = std::getenv("TXINBOX_EXAMPLE");
  REQUIRE(program != nullptr);
  KafkaBroker broker;
  (void)broker.create("orders");
  for (const char* body : {R"({"no":"1","sku":"tea"})", R"({"no":"2","sku":"tea"})", R"({"no":"1","sku":"tea"})",
                           R"({"no":"3"})", "no JSON"}) {
    broker.publish("orders", body, "k");
  }
  broker.flush();
  // The example is a service: it runs until SIGTERM. The last message of the lane is the second dead letter.
  const auto letters = open_kafka({.brokers = broker_address(), .group = "letters", .topics = {"orders.dead"}});
  const auto wait = [&] {
    std::size_t got = 0;
    CHECK(eventually([&] { return (got += letters->poll(10, 100ms).size()) >= 2; }));
  };
  CHECK(output_of_example(program, broker_address(), wait) == "2 orders, 1 duplicates, 2 dead letters\n");
}

TEST_CASE("the command names a missing topic, and consumes nothing") {
  KafkaBroker broker;
  Orders t;
  const Ended ended = run(Orders::arguments({"--from", "kafka://" + broker_address() + "/missing?group=g",
                                             "--dead-letters", "missing.dead", "--idle-exit", "1s"}),
                          t.db.url());
  CHECK(ended.status == 3);
  CHECK(ended.err.find("topic missing") != std::string::npos);
}

TEST_CASE("Kafka: the breaker keeps the messages of a bad deployment from becoming dead letters") {
  KafkaBroker broker;
  breaker_keeps_messages(broker, "breaker");
}

TEST_CASE("Kafka: after a bad deployment, redrive publishes all dead letters again, although it is killed") {
  KafkaBroker broker;
  redrive_survives_kills(broker, "redrive-kills");
}

TEST_CASE("Kafka: redrive leaves dead letters that it cannot publish") {
  KafkaBroker broker;
  redrive_leaves_what_it_cannot_publish(broker, "redrive-leaves", "missing-topic");
}

}  // namespace
}  // namespace txinbox::test
