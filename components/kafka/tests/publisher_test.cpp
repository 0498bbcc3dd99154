// The publisher of the outbox with librdkafka's mock cluster.

#include <chrono>
#include <cstdint>
#include <map>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/kafka.hpp>
#include <txinbox/txinbox.hpp>

#include "mock_cluster.hpp"
#include "support/command.hpp"
#include "support/effects.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

constexpr std::int16_t produce = 0;

OutgoingMessage booked(std::string key, std::string payload) {
  return {.topic = "stock", .key = std::move(key), .payload = std::move(payload), .id = "id of " + payload};
}

TEST_CASE("Kafka: a message of the outbox arrives with id, type, key and headers, and the id is the receiver's key") {
  MockCluster cluster;
  cluster.create("stock");
  EffectDatabase sender;
  Pool pool = sender.pool();
  std::vector<std::string> ids;
  TxConsumer orders(pool, "orders");
  const auto book = [&](soci::session& sql, Delivery& delivery) {
    ids.push_back(Outbox::add(sql, {.topic = "stock",
                                    .key = delivery.message().business_key,
                                    .type = "OrderBooked",
                                    .payload = "{\"no\":1}",
                                    .headers = {{"traceparent", "00-1"}}}));
  };
  REQUIRE(orders.consume({.business_key = "order1"}, book).outcome == Outcome::consumed);
  Outbox::add(*sender.session(), {.topic = "stock"});

  EffectDatabase receiver;
  Pool its_pool = receiver.pool();
  std::stop_source stop;
  std::map<std::string, std::string> seen;
  {
    const OutboxRelay relay(pool, kafka_publisher({.brokers = cluster.brokers()}));
    const auto source = open_kafka(cluster.consumer("g", "stock"));
    const auto listener = on_event([&](const RunEvent& event) {
      if (event.type == RunEventType::acknowledged && receiver.effects() == 2) stop.request_stop();
    });
    TxConsumer stock(its_pool, "stock", {.stop = stop.get_token(), .listeners = {listener}});
    const RunOptions options{.dead_letter = [](const DeadLetter&) {}};
    (void)run(
        *source, stock, key_from("@header:id"),
        [&](soci::session& sql, Delivery& delivery) {
          const Incoming& in = delivery.incoming();
          if (in.key) {
            seen["key"] = *in.key;
            seen["body"] = in.body;
            for (const IncomingHeader& header : in.headers) seen[std::string(header.name)] = header.value;
          }
          add_effect(sql, delivery);
        },
        options);
  }
  REQUIRE(ids.size() == 1);
  CHECK(
      seen ==
      std::map<std::string, std::string>{
          {"key", "order1"}, {"body", "{\"no\":1}"}, {"id", ids[0]}, {"type", "OrderBooked"}, {"traceparent", "00-1"}});
  CHECK(sender.number("select count(*) from txinbox_outbox_message") == 0);
}

TEST_CASE("Kafka: the publisher returns a result for each message, and continues after an error") {
  struct Case {
    rd_kafka_resp_err_t code;
    PublishStatus status;
  };
  // The last code is fatal for an idempotent producer. Then the publisher opens a new producer.
  for (const Case& each : {Case{RD_KAFKA_RESP_ERR_NO_ERROR, PublishStatus::confirmed},
                           Case{RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, PublishStatus::rejected},
                           Case{RD_KAFKA_RESP_ERR_POLICY_VIOLATION, PublishStatus::failed},
                           Case{RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, PublishStatus::failed}}) {
    const std::string name = rd_kafka_err2name(each.code);
    CAPTURE(name);
    MockCluster cluster;
    cluster.create("stock");
    const Publisher publish = kafka_publisher({.brokers = cluster.brokers(), .timeout = 30s});
    if (each.code != RD_KAFKA_RESP_ERR_NO_ERROR) cluster.fail(produce, each.code);
    const std::vector<OutgoingMessage> one{booked("a", "1")};
    const auto results = publish(one);
    REQUIRE(results.size() == 1);
    CHECK_MESSAGE(results[0].status == each.status, results[0].error);
    CHECK(results[0].error.empty() == (each.status == PublishStatus::confirmed));
    // While the producer recovers, it may drop its messages. The relay publishes them again.
    const std::vector<OutgoingMessage> two{booked("a", "2"), booked("", "3")};
    const auto both_confirmed = [&] {
      const auto again = publish(two);
      return again.size() == 2 && again[0].status == PublishStatus::confirmed &&
             again[1].status == PublishStatus::confirmed;
    };
    int tries = 1;
    while (tries < 20 && !both_confirmed()) ++tries;
    CHECK(tries < 20);
  }
}

TEST_CASE("Kafka: a right that the whole producer lacks blames no message") {
  constexpr std::int16_t init_producer_id = 22;
  MockCluster cluster;
  cluster.create("stock");
  // The producer asks for its id as soon as it exists, so the broker must refuse from before that.
  cluster.fail(init_producer_id, RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED);
  const Publisher publish = kafka_publisher({.brokers = cluster.brokers(), .timeout = 30s});
  const std::vector<OutgoingMessage> messages{booked("a", "1"), booked("b", "2")};
  std::string refusal;
  try {
    (void)publish(messages);
  } catch (const std::runtime_error& error) {
    refusal = error.what();
  }
  CHECK(refusal.find("CLUSTER_AUTHORIZATION_FAILED") != std::string::npos);
  for (const PublishResult& result : publish(messages)) CHECK(result.status == PublishStatus::confirmed);
}

TEST_CASE("Kafka: a message of more than 1 MB, and more messages than the producer's queue holds, are published") {
  MockCluster cluster;
  cluster.create("stock");
  const Publisher publish =
      kafka_publisher({.brokers = cluster.brokers(), .properties = {{"queue.buffering.max.messages", "3"}}});
  std::vector<OutgoingMessage> messages{booked("large", "0")};
  messages[0].payload.assign(3UL * 1024 * 1024, 'x');
  for (int i = 1; i < 20; ++i) messages.push_back(booked(std::to_string(i), std::to_string(i)));
  const auto results = publish(messages);
  REQUIRE(results.size() == messages.size());
  for (const PublishResult& result : results) CHECK_MESSAGE(result.status == PublishStatus::confirmed, result.error);
}

TEST_CASE("Kafka: the command relays the outbox to the broker") {
  MockCluster cluster;
  cluster.create("stock");
  const TestDatabase db;
  for (int i = 0; i < 50; ++i) {
    Outbox::add(*db.session(), {.topic = "stock", .key = std::to_string(i % 7), .payload = std::to_string(i)});
  }
  const Ended ended =
      run(Command::Arguments{"relay", "--to", "kafka://" + cluster.brokers(), "--until-empty"}, db.url());
  CAPTURE(ended.err);
  CHECK(ended.status == 0);
  CHECK(ended.last_line() == "published 50, failed attempts 0, parked 0");
  CHECK(db.number("select count(*) from txinbox_outbox_message") == 0);
}

TEST_CASE("the URL of a Kafka publisher has brokers and properties, and no topic, group or password") {
  const auto options = kafka_publisher_options_from_url("kafka://a:9092,b:9092?security.protocol=ssl");
  CHECK(options.brokers == "a:9092,b:9092");
  CHECK(options.properties.at("security.protocol") == "ssl");
  CHECK(kafka_publisher_options_from_url("kafka://a:9092").properties.count("security.protocol") == 0);
  for (const char* url : {"", "kafka://", "http://a", "kafka://a:9092/topic", "kafka://a?sasl.password=x",
                          "kafka://a?group=g", "kafka://a?group.instance.id=i", "kafka://a?dead_letters=d",
                          "kafka://a?max.poll.interval.ms=60000", "kafka://a?message.timeout.ms=2000"}) {
    CAPTURE(url);
    CHECK(thrown_by([&] { (void)kafka_publisher_options_from_url(url); }) == "invalid_argument");
  }
  CHECK(thrown_by([] { (void)kafka_publisher({.brokers = ""}); }) == "invalid_argument");
  CHECK(thrown_by([] { (void)kafka_publisher({.brokers = "a", .timeout = std::chrono::milliseconds::max()}); }) ==
        "invalid_argument");
  CHECK(thrown_by([] {
          (void)kafka_publisher({.brokers = "a", .properties = {{"acks", "0"}}});
        }) == "invalid_argument");
}

}  // namespace
}  // namespace txinbox::test
