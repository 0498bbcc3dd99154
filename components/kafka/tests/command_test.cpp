// The command on Kafka, killed and restarted.

#include <doctest/doctest.h>

#include "brokers/command_tests.hpp"
#include "kafka_broker.hpp"

namespace txinbox::test {
namespace {

TEST_CASE("Kafka: consumers that are killed lose nothing and double nothing") {
  KafkaBroker broker;
  survives_kills(broker, "kills");
}

TEST_CASE("Kafka: a broker that dies and comes back loses nothing and doubles nothing") {
  KafkaBroker broker;
  survives_broker_restart(broker, "restarts");
}

TEST_CASE("Kafka: a database server that dies and comes back loses nothing and doubles nothing") {
  KafkaBroker broker;
  survives_database_restart(broker, "database");
}

TEST_CASE("Kafka: messages that cannot be consumed become dead letters, and the others go on") {
  KafkaBroker broker;
  dead_letters_do_not_stop_the_others(broker, "bad");
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
  CHECK(output_of_example(program, broker_address()) == "2 orders, 1 duplicates, 2 dead letters\n");
}

TEST_CASE("the command says which topic is missing, and consumes nothing") {
  KafkaBroker broker;
  Orders t;
  const Ended ended = run(Orders::arguments({"--from", "kafka://" + broker_address() + "/missing?group=g",
                                             "--dead-letters", "missing.dead", "--idle-exit", "1s"}),
                          t.db.url());
  CHECK(ended.status == 3);
  CHECK(ended.err.find("topic missing") != std::string::npos);
}

}  // namespace
}  // namespace txinbox::test
