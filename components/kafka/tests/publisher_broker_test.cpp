// The publisher of the outbox with a real broker.

#include <chrono>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/kafka.hpp>
#include <txinbox/txinbox.hpp>

#include "kafka_broker.hpp"
#include "support/effects.hpp"
#include "support/eventually.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("Kafka: a published message arrives with id, type, key and headers, and two copies take effect once") {
  KafkaBroker broker;
  (void)broker.create("published");
  const EffectDatabase sender;
  Pool pool = sender.pool();
  const std::string id = Outbox::add(*sender.session(), {.topic = "published",
                                                         .key = "order1",
                                                         .type = "OrderBooked",
                                                         .payload = "body",
                                                         .headers = {{"traceparent", "00-1"}}});
  const auto publish = kafka_publisher({.brokers = broker_address()});
  // A relay that crashes after the confirmation publishes again.
  const std::vector<OutgoingMessage> before{{.topic = "published", .key = "order1", .payload = "body", .id = id}};
  REQUIRE(publish(before).front().status == PublishStatus::confirmed);
  {
    const OutboxRelay relay(pool, publish, {.poll = 10ms});
    CHECK(outbox_becomes_empty(sender));
  }

  EffectDatabase receiver;
  Pool its_pool = receiver.pool();
  TxConsumer stock(its_pool, "stock");
  std::map<std::string, std::string> seen;
  const MessageOf by_id = key_from("@header:id");
  const MessageOf message_of = [&](const Incoming& in) {
    seen["key"] = in.key.value_or("none");
    seen["body"] = in.body;
    for (const IncomingHeader& header : in.headers) seen[std::string(header.name)] = header.value;
    return by_id(in);
  };
  const auto source = open_kafka(broker.options("published"));
  const RunSummary summary =
      run(*source, stock, message_of, add_effect, {.backoff = 5ms, .max_backoff = 50ms, .idle_exit = 3s});
  CHECK(summary.consumed == 1);
  CHECK(summary.already_consumed == 1);
  CHECK(receiver.effects_of(id) == 1);
  CHECK(seen == std::map<std::string, std::string>{
                    {"key", "order1"}, {"body", "body"}, {"id", id}, {"type", "OrderBooked"}, {"traceparent", "00-1"}});
}

TEST_CASE("Kafka: a message of more than 1 MB is confirmed if the topic allows it, and rejected if not") {
  KafkaBroker broker;
  broker.publisher().create("takes-large", 3'000'000);
  broker.publisher().create("takes-small", 10'000);
  const auto publish = kafka_publisher({.brokers = broker_address()});
  const std::string large(2UL * 1024 * 1024, 'x');
  const std::vector<OutgoingMessage> messages{{.topic = "takes-large", .key = "a", .payload = large, .id = "1"},
                                              {.topic = "takes-small", .key = "b", .payload = large, .id = "2"},
                                              {.topic = "takes-small", .key = "c", .payload = "small", .id = "3"}};
  const auto results = publish(messages);
  REQUIRE(results.size() == 3);
  CHECK_MESSAGE(results[0].status == PublishStatus::confirmed, results[0].error);
  CHECK_MESSAGE(results[1].status == PublishStatus::rejected, results[1].error);
  // The topic has one partition, so the client has sent it in the same batch as the large one.
  CHECK_MESSAGE(results[2].status == PublishStatus::confirmed, results[2].error);
}

TEST_CASE("Kafka: messages that fit are confirmed, although the client sends them in a batch that is too large") {
  KafkaBroker broker;
  broker.publisher().create("small-batches", 100'000);
  const auto publish = kafka_publisher({.brokers = broker_address()});
  std::vector<OutgoingMessage> messages;
  for (int i = 0; i < 20; ++i) {
    messages.push_back({.topic = "small-batches", .payload = std::string(50'000, 'x'), .id = std::to_string(i)});
  }
  for (const PublishResult& each : publish(messages))
    CHECK_MESSAGE(each.status == PublishStatus::confirmed, each.error);
}

TEST_CASE("Kafka: a broker that was killed has all confirmed messages, and the publisher continues") {
  KafkaBroker broker;
  (void)broker.create("survives");
  const auto publish = kafka_publisher({.brokers = broker_address(), .timeout = 2s});
  const auto one = [&](const std::string& id) {
    const std::vector<OutgoingMessage> messages{{.topic = "survives", .key = id, .payload = id, .id = id}};
    return publish(messages).front().status;
  };
  REQUIRE(one("before") == PublishStatus::confirmed);
  broker.kill();
  CHECK_THROWS_AS(one("while"), std::runtime_error);
  broker.start();
  bool is_confirmed = false;
  const auto give_up = std::chrono::steady_clock::now() + 1min;
  while (!is_confirmed && std::chrono::steady_clock::now() < give_up) {
    try {
      is_confirmed = one("after") == PublishStatus::confirmed;
    } catch (const std::runtime_error&) {
      is_confirmed = false;  // the broker has not started again yet
    }
  }
  CHECK(is_confirmed);

  EffectDatabase receiver;
  Pool pool = receiver.pool();
  TxConsumer consumer(pool, "stock");
  const auto source = open_kafka(broker.options("survives"));
  (void)run(*source, consumer, key_from("@header:id"), add_effect, {.idle_exit = 4s});
  CHECK(receiver.effects_of("before") == 1);
  CHECK(receiver.effects_of("after") == 1);
}

}  // namespace
}  // namespace txinbox::test
