// Consumers of RocketMQ are killed at each step of a delivery.

#include <chrono>
#include <memory>
#include <string>

#include <doctest/doctest.h>

#include "brokers/kill_steps.hpp"
#include "rocketmq_broker.hpp"

namespace txinbox::test {
namespace {

std::unique_ptr<Source> open(const std::string& name) { return open_rocketmq(RocketMqBroker().options(name)); }

TEST_CASE("(run by the next test) RocketMQ: a consumer that is killed at a step" * doctest::skip()) {
  consume_until_killed(open);
}

TEST_CASE("RocketMQ: consumers that are killed at each step of a delivery lose nothing and double nothing") {
  RocketMqBroker broker;
  kill_at_each_step(broker, "steps", open, "(run by the next test) RocketMQ*", std::chrono::seconds(25));
}

}  // namespace
}  // namespace txinbox::test
