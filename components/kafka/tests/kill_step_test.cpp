// Consumers of Kafka are killed at each step of a delivery.

#include <chrono>
#include <memory>
#include <string>

#include <doctest/doctest.h>

#include "brokers/kill_steps.hpp"
#include "kafka_broker.hpp"

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

}  // namespace
}  // namespace txinbox::test
