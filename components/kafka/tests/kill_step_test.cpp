// Consumers of Kafka are killed at each step of a delivery.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <future>
#include <memory>
#include <string>

#include <doctest/doctest.h>

#include "brokers/background_producer.hpp"
#include "brokers/kill_steps.hpp"
#include "kafka_broker.hpp"
#include "support/eventually.hpp"

namespace txinbox::test {
namespace {

std::unique_ptr<Source> open(const std::string& name) { return open_kafka(KafkaBroker().options(name)); }

TEST_CASE("(run by the next test) Kafka: a consumer that is killed at a step" * doctest::skip()) {
  consume_until_killed(open);
}

TEST_CASE("Kafka: consumers that are killed at each step of a delivery lose nothing and double nothing") {
  KafkaBroker broker;
  kill_at_each_step(broker, "steps", open, "(run by the next test) Kafka*", std::chrono::seconds(4));
}

/// Joins the group and stays until the other consumer has ended. So the broker takes partitions away from the other.
/// The messages that this consumer gets are delivered again. `meanwhile` is called at each poll.
template <class Meanwhile>
void join_until_ended(const std::string& topic, std::future<int>& other, const Meanwhile& meanwhile) {
  const std::unique_ptr<Source> guest = open(topic);
  while (other.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    (void)guest->poll(10, std::chrono::milliseconds(50));
    meanwhile();
  }
  guest->close();
}

TEST_CASE("Kafka: consumers that are killed in a rebalance lose nothing and double nothing") {
  using namespace std::chrono_literals;
  const int times = std::max(2, kills(10) / 5);  // before each, the group waits for the session of the killed one
  const std::string topic = "leaving";
  KafkaBroker broker;
  (void)broker.create(topic);
  const EffectDatabase db;
  BackgroundProducer producer(
      [&](int from, int to) {
        for (int i = from; i < to; ++i) broker.publish(topic, "key" + std::to_string(i), "key" + std::to_string(i));
        broker.flush();
      },
      20);
  const auto keep_publishing = [&] { producer.consumed(db.effects()); };
  int killed = 0;
  for (int i = 0; i < times; ++i) {
    const long long before = db.effects();
    keep_publishing();
    std::future<int> consumer = std::async(std::launch::async, [&] {
      return run_until_killed("(run by the next test) Kafka*", "rebalance", 1, topic, db);
    });
    CHECK(eventually([&] { return db.effects() > before; }));  // the process has partitions
    join_until_ended(topic, consumer, keep_publishing);
    if (consumer.get() == SIGKILL) ++killed;
  }
  const int keys = producer.stop();
  CHECK(killed == times);

  Pool pool = open_pool(db.url(), {.connections = 1});
  StepKiller none("", 0);
  const RunSummary rest = consume_all(*open(topic), pool, 4s, none);
  count(killed, "consumers killed in a rebalance");
  count(rest.received, "messages that they left behind");
  count(keys, "keys");
  count(db.effects(), "effects");
  CHECK(db.effects() == keys);
  CHECK(db.number("select count(distinct id) from effect") == keys);
}

}  // namespace
}  // namespace txinbox::test
