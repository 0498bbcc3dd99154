// Partitions of a real broker that are read again.

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "admin.hpp"
#include "failing_firsts.hpp"
#include "kafka_broker.hpp"
#include "support/counts.hpp"

namespace txinbox::test {
namespace {

KafkaOptions options_of(const std::string& topic) {
  return {.brokers = broker_address(),
          .group = topic + "-group",
          .topics = {topic},
          .properties = {{"session.timeout.ms", "6000"}}};
}

long long offset_of(const Incoming& incoming) {
  return std::stoll(std::string(incoming.id.substr(incoming.id.find('@') + 1)));
}

/// Polls until there are this many messages, and checks that none is missing between two others.
std::vector<Incoming> take(Source& source, std::size_t count) {
  std::vector<Incoming> all;
  const auto give_up = std::chrono::steady_clock::now() + 2min;
  while (all.size() < count && std::chrono::steady_clock::now() < give_up) {
    for (Incoming& each : source.poll(count - all.size(), 100ms)) {
      if (!all.empty()) CHECK(offset_of(each) == offset_of(all.back()) + 1);
      all.push_back(std::move(each));
    }
  }
  REQUIRE(all.size() == count);
  return all;
}

void publish(const std::string& topic, int messages) {
  Publisher publisher(broker_address());
  for (int i = 0; i < messages; ++i) publisher.publish(topic, {.body = std::to_string(i), .partition = 0});
  publisher.flush();
}

TEST_CASE("Kafka: with little room, any number of partitions of a broker can wait for their first message") {
  Admin(broker_address()).create("firsts", 64);
  count(consume_with_failing_firsts(options_of("firsts"), {.partitions = 64, .messages_each = 200, .failures_each = 6}),
        "partitions read again");
}

TEST_CASE("Kafka: a partition that was read ahead is read again from the message that was asked for") {
  Admin(broker_address()).create("ahead", 1);
  publish("ahead", 1000);
  const auto source = open_kafka(options_of("ahead"));
  std::vector<Incoming> held = take(*source, 20);
  const std::uint64_t lane = held[0].lane.value();
  for (std::size_t round = 0; round < 30; ++round) {
    source->pause(lane);
    if (round % 3 != 0) CHECK(source->poll(10, 5ms).empty());
    if (round % 2 != 0) CHECK(source->poll(0, 5ms).empty());
    source->rewind(held[10]);
    CHECK(source->poll(10, 5ms).empty());
    source->resume(lane);
    held.resize(10);
    for (Incoming& each : take(*source, 15 + 10 * (round % 2))) held.push_back(std::move(each));
    for (std::size_t i = 0; i < held.size(); ++i)
      REQUIRE(offset_of(held[i]) == offset_of(held[0]) + static_cast<int>(i));
    held.erase(held.begin(), held.begin() + 5);
  }
}

TEST_CASE("Kafka: the messages that a source without room has kept come after those that are read again") {
  Admin(broker_address()).create("kept", 1);
  publish("kept", 200);
  const auto source = open_kafka(options_of("kept"));
  const std::vector<Incoming> held = take(*source, 20);
  for (int i = 0; i < 6; ++i) CHECK(source->poll(0, 600ms).empty());  // at least three messages are kept
  source->pause(held[0].lane.value());
  source->rewind(held[10]);
  source->resume(held[0].lane.value());
  CHECK(offset_of(take(*source, 190).front()) == offset_of(held[10]));
}

TEST_CASE("Kafka: if the messages after a rewind were deleted, the partition goes on with the first that is left") {
  Admin admin(broker_address());
  admin.create("deleted", 1);
  publish("deleted", 100);
  const auto source = open_kafka(options_of("deleted"));
  const std::vector<Incoming> held = take(*source, 50);
  source->pause(held[0].lane.value());
  source->rewind(held[10]);
  admin.remove_before("deleted", 0, 30);
  source->resume(held[0].lane.value());
  const std::vector<Incoming> rest = take(*source, 70);
  CHECK(offset_of(rest.front()) == 30);
}

}  // namespace
}  // namespace txinbox::test
