// The headers of published messages and of dead letters, with librdkafka's mock cluster.

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/kafka.hpp>

#include "mock_cluster.hpp"
#include "publisher.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;
using Names = std::vector<std::pair<std::string, std::string>>;

Incoming first_of(Source& source) {
  const auto give_up = std::chrono::steady_clock::now() + 60s;
  while (std::chrono::steady_clock::now() < give_up) {
    std::vector<Incoming> got = source.poll(1, 1s);
    if (!got.empty()) return got.front();
  }
  FAIL("there is no message");
  return {};
}

Names names_of(const Incoming& incoming) {
  Names found;
  for (const IncomingHeader& each : incoming.headers) found.emplace_back(each.name, each.value);
  return found;
}

TEST_CASE("Kafka: a header of a message does not shadow the id and the type that the publisher writes") {
  MockCluster cluster;
  cluster.create("stock");
  const std::vector<OutgoingMessage> messages{
      {.topic = "stock",
       .headers = {{"id", "old-id"}, {"header:id", "older-id"}, {"type", "old-type"}, {"traceparent", "00-1"}},
       .id = "new-id"}};
  REQUIRE(kafka_publisher({.brokers = cluster.brokers()})(messages).front().status == PublishStatus::confirmed);
  const auto source = open_kafka(cluster.consumer("g", "stock"));
  CHECK(names_of(first_of(*source)) == Names{{"id", "new-id"},
                                             {"header:id", "older-id"},
                                             {"header:header:id", "old-id"},
                                             {"traceparent", "00-1"},
                                             {"header:type", "old-type"}});
}

TEST_CASE("Kafka: a second dead letter of a message has the headers of the newest only") {
  MockCluster cluster;
  cluster.create("orders");
  cluster.create("orders.dead");
  Publisher publisher(cluster.brokers());
  publisher.publish("orders", {.body = "bad",
                               .headers = {{.name = "txinbox-reason", .value = "conflict"},
                                           {.name = "text", .value = "value"},
                                           {.name = "txinbox-key", .value = "old-key"},
                                           {.name = "txinbox-other", .value = "kept"}},
                               .partition = 0});
  publisher.flush();
  KafkaOptions options = cluster.consumer("g", "orders");
  options.dead_letters = "orders.dead";
  const auto source = open_kafka(options);
  const Incoming incoming = first_of(*source);
  std::vector<DeadLetter> letters{{.incoming = &incoming, .reason = "parked"}};
  letters[0].consumer = "svc";
  letters[0].business_key = "new-key";
  letters[0].failures = 3;
  source->dead_letter(letters);
  REQUIRE(letters[0].confirmed);
  const auto reader = open_kafka(cluster.consumer("r", "orders.dead"));
  CHECK(names_of(first_of(*reader)) == Names{{"text", "value"},
                                             {"txinbox-other", "kept"},
                                             {"txinbox-reason", "parked"},
                                             {"txinbox-error-class", ""},
                                             {"txinbox-consumer", "svc"},
                                             {"txinbox-key", "new-key"},
                                             {"txinbox-origin", "orders/0@0"},
                                             {"txinbox-source", "orders"},
                                             {"txinbox-failures", "3"}});
}

TEST_CASE("Kafka: a dead letter that is published again is the record as it was sent") {
  MockCluster cluster;
  cluster.create("orders");
  cluster.create("orders.dead");
  Publisher publisher(cluster.brokers());
  publisher.publish("orders.dead", {.body = std::string("b\0dy", 4),
                                    .key = "k",
                                    .headers = {{.name = "twice", .value = "1"},
                                                {.name = "txinbox-reason", .value = "parked"},
                                                {.name = "twice", .value = std::string("\0\xff", 2)},
                                                {.name = "txinbox-redrives", .value = "1"},
                                                {.name = "txinbox-other", .value = "kept"}},
                                    .partition = 0});
  publisher.flush();
  const auto dead = open_kafka(cluster.consumer("g", "orders.dead"));
  const Incoming incoming = first_of(*dead);
  Incoming tombstone = incoming;
  tombstone.has_body = false;
  tombstone.key.reset();
  tombstone.headers = {};
  const std::vector<Republication> again{
      {.incoming = &incoming, .destination = "orders", .headers = {{dead_letter_header::redrives, "2"}}},
      {.incoming = &tombstone, .destination = "orders"}};
  const Republisher publish = kafka_republisher({.brokers = cluster.brokers()});
  for (const PublishResult& each : publish(again)) CHECK(each.status == PublishStatus::confirmed);
  const auto reader = open_kafka(cluster.consumer("r", "orders"));
  int records = 0, tombstones = 0;
  while (records + tombstones < 2) {
    const Incoming sent = first_of(*reader);
    if (!sent.has_body) {
      ++tombstones;
      CHECK_FALSE(sent.key);
      CHECK(sent.headers.empty());
      continue;
    }
    ++records;
    CHECK(sent.body == std::string_view("b\0dy", 4));
    CHECK(sent.key == "k");
    CHECK(names_of(sent) == Names{{"twice", "1"},
                                  {"twice", std::string("\0\xff", 2)},
                                  {"txinbox-other", "kept"},
                                  {"txinbox-redrives", "2"}});
  }
  CHECK(records == 1);
}

}  // namespace
}  // namespace txinbox::test
