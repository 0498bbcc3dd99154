// The command consumes from RocketMQ. It is killed and restarted.

#include <doctest/doctest.h>

#include "brokers/bad_deployment_tests.hpp"
#include "brokers/command_tests.hpp"
#include "brokers/join_and_leave.hpp"
#include "rocketmq_broker.hpp"

namespace txinbox::test {
namespace {

TEST_CASE("RocketMQ: consumers that are killed lose nothing and double nothing") {
  RocketMqBroker broker;
  survives_kills(broker, "kills");
}

TEST_CASE("RocketMQ: consumers join and leave, and fewer than 1 % of the messages arrive again") {
  RocketMqBroker broker;
  members_join_and_leave(broker, "joins");
}

TEST_CASE("RocketMQ: with --idle-exit the command ends with a status of its own if the broker stays away") {
  RocketMqBroker broker;
  ends_if_broker_stays_away(broker, "stays-away");
}

TEST_CASE("RocketMQ: a broker that dies and comes back loses nothing and doubles nothing") {
  RocketMqBroker broker;
  survives_broker_restart(broker, "restarts");
}

TEST_CASE("RocketMQ: a database server that dies and comes back loses nothing and doubles nothing" *
          doctest::skip(!TestDatabase::can_restart_server())) {
  RocketMqBroker broker;
  survives_database_restart(broker, "database");
}

TEST_CASE("RocketMQ: a broker and a database server that die together lose nothing and double nothing" *
          doctest::skip(!TestDatabase::can_restart_server())) {
  RocketMqBroker broker;
  survives_both_restarts(broker, "both");
}

TEST_CASE("RocketMQ: messages that cannot be consumed become dead letters, and the others are consumed") {
  RocketMqBroker broker;
  dead_letters_do_not_stop_the_others(broker, "bad");
  CHECK(RocketMqBroker::count("%DLQ%bad") == 4);
}

TEST_CASE("RocketMQ: with --key, the first key, a header, or both together are the business key") {
  RocketMqBroker broker;
  const auto add = [&](const OutgoingMessage& message) { broker.add(message); };
  consumes_by_key_of_delivery(broker, "by-header", "@header:ce_id", "key", 10, add);
  consumes_by_key_of_delivery(broker, "by-both", "{@key}#{@header:ce_id}", "lane", 20, add);
}

TEST_CASE("RocketMQ: the memory does not grow with the messages" * doctest::skip(messages_for_memory() == 0)) {
  RocketMqBroker broker;
  memory_stays_flat(broker, "memory");
}

TEST_CASE("RocketMQ: the example consumes each order once") {
  const char* program = std::getenv("TXINBOX_EXAMPLE");
  REQUIRE(program != nullptr);
  RocketMqBroker broker;
  const std::string url = broker.create("orders");
  for (const char* body : {R"({"no":"1","sku":"tea"})", R"({"no":"2","sku":"tea"})", R"({"no":"1","sku":"tea"})",
                           R"({"no":"3"})", "no JSON"}) {
    broker.publish("orders", body, "k");
  }
  broker.flush();
  CHECK(output_of_example(program, url) == "2 orders, 1 duplicates, 2 dead letters\n");
}

TEST_CASE("the command names a missing topic, and says that RocketMQ has its own dead-letter queue") {
  RocketMqBroker broker;
  Orders t;
  const std::string url = "rocketmq://" + broker_address() + "/missing?group=missing";
  const Ended ended = run(Orders::arguments({"--from", url, "--idle-exit", "1s"}), t.db.url());
  CHECK(ended.status == 3);
  CHECK(ended.err.find("topic 'missing'") != std::string::npos);
  const Ended refused = run(Orders::arguments({"--from", url, "--dead-letters", "dead"}), t.db.url());
  CHECK(refused.status == 2);
  CHECK(refused.err.find("--dead-letters") != std::string::npos);
}

TEST_CASE("RocketMQ: the breaker keeps the messages of a bad deployment from becoming dead letters") {
  RocketMqBroker broker;
  breaker_keeps_messages(broker, "breaker");
}

TEST_CASE("RocketMQ: after a bad deployment, redrive publishes all dead letters again, although it is killed") {
  RocketMqBroker broker;
  redrive_survives_kills(broker, "redrive-kills");
}

}  // namespace
}  // namespace txinbox::test
