// The command consumes from RabbitMQ. It is killed and restarted.

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/rabbitmq.hpp>

#include "brokers/bad_deployment_tests.hpp"
#include "brokers/command_tests.hpp"
#include "brokers/join_and_leave.hpp"
#include "rabbitmq_broker.hpp"

namespace txinbox::test {
namespace {

TEST_CASE("RabbitMQ: consumers that are killed lose nothing and double nothing") {
  RabbitMqBroker broker;
  survives_kills(broker, "kills");
}

TEST_CASE("RabbitMQ: consumers join and leave, and fewer than 1 % of the messages arrive again") {
  RabbitMqBroker broker;
  members_join_and_leave(broker, "joins");
}

TEST_CASE("RabbitMQ: with --idle-exit the command ends with a status of its own if the broker stays away") {
  RabbitMqBroker broker;
  ends_if_broker_stays_away(broker, "stays-away");
}

TEST_CASE("RabbitMQ: a broker that dies and comes back loses nothing and doubles nothing") {
  RabbitMqBroker broker;
  survives_broker_restart(broker, "restarts");
}

TEST_CASE("RabbitMQ: a database server that dies and comes back loses nothing and doubles nothing" *
          doctest::skip(!TestDatabase::can_restart_server())) {
  RabbitMqBroker broker;
  survives_database_restart(broker, "database");
}

TEST_CASE("RabbitMQ: a broker and a database server that die together lose nothing and double nothing" *
          doctest::skip(!TestDatabase::can_restart_server())) {
  RabbitMqBroker broker;
  survives_both_restarts(broker, "both");
}

TEST_CASE("RabbitMQ: messages that cannot be consumed become dead letters, and the others are consumed") {
  RabbitMqBroker broker;
  dead_letters_do_not_stop_the_others(broker, "bad");
  CHECK(broker.ready("bad.dead") == 4);
  CHECK(broker.ready("bad") == 0);
}

TEST_CASE("RabbitMQ: with --key, headers are the business key, also two of them together") {
  RabbitMqBroker broker;
  const Publisher publish =
      rabbitmq_publisher(rabbitmq_publisher_options_from_url("amqp://guest@" + broker_address() + "/%2F"));
  const auto add = [&](const OutgoingMessage& message) {
    REQUIRE(publish(std::vector{message}).front().status == PublishStatus::confirmed);
  };
  consumes_by_key_of_delivery(broker, "by-header", "@header:ce_id", "key", 10, add);
  consumes_by_key_of_delivery(broker, "by-both", "{@header:ce_source}#{@header:ce_id}", "lane", 20, add);
}

TEST_CASE("RabbitMQ: with --key @key, no message can be consumed, because the broker has no record keys") {
  RabbitMqBroker broker;
  OrdersFromBroker t(broker, "by-key");
  broker.publish("by-key", OrdersFromBroker::body(1), "k1");
  broker.flush();
  Command::Arguments words = t.arguments({"--idle-exit", broker.idle_exit()});
  std::ranges::replace(words, "/no", "@key");
  const Ended ended = run(words, t.db.url());
  CHECK(ended.status == 1);
  CHECK_MESSAGE(occurrences(ended.err, "the message has no record key; dead letter (invalid_key)") == 1, ended.err);
}

TEST_CASE("RabbitMQ: the memory does not grow with the messages" * doctest::skip(messages_for_memory() == 0)) {
  RabbitMqBroker broker;
  memory_stays_flat(broker, "memory");
}

TEST_CASE("RabbitMQ: the example consumes each order once") {
  const char* program = std::getenv("TXINBOX_EXAMPLE");
  REQUIRE(program != nullptr);
  RabbitMqBroker broker;
  const std::string url = broker.create("orders");
  for (const char* body : {R"({"no":"1","sku":"tea"})", R"({"no":"2","sku":"tea"})", R"({"no":"1","sku":"tea"})",
                           R"({"no":"3"})", "no JSON"}) {
    broker.publish("orders", body, nullptr);
  }
  broker.flush();
  CHECK(output_of_example(program, url) == "2 orders, 1 duplicates, 2 dead letters\n");
}

TEST_CASE("the command names a missing queue, and does not print the password") {
  RabbitMqBroker broker;
  Orders t;
  const auto error_of = [&](const std::string& url) {
    const Ended ended =
        run(Orders::arguments({"--from", url, "--dead-letters", "missing.dead", "--idle-exit", "1s"}), t.db.url());
    CHECK(ended.status == 3);
    return ended.err;
  };
  CHECK(error_of("amqp://guest@" + broker_address() + "/%2F/missing").find("'missing'") != std::string::npos);
  const Ended no_place =
      run(Orders::arguments({"--from", "amqp://guest@" + broker_address() + "/%2F/missing"}), t.db.url());
  CHECK(no_place.status == 2);
  CHECK(no_place.err.find("--dead-letters") != std::string::npos);
  ::setenv("TXINBOX_RABBITMQ_PASSWORD", "hunter2", 1);
  const std::string refused = error_of("amqp://guest@" + broker_address() + "/%2F/missing");
  CHECK(refused.find("password") != std::string::npos);
  CHECK(refused.find("hunter2") == std::string::npos);
}

TEST_CASE("RabbitMQ: the breaker keeps the messages of a bad deployment from becoming dead letters") {
  RabbitMqBroker broker;
  breaker_keeps_messages(broker, "breaker");
}

TEST_CASE("RabbitMQ: after a bad deployment, redrive publishes all dead letters again, although it is killed") {
  RabbitMqBroker broker;
  redrive_survives_kills(broker, "redrive-kills");
}

TEST_CASE("RabbitMQ: redrive leaves dead letters that it cannot publish") {
  RabbitMqBroker broker;
  redrive_leaves_what_it_cannot_publish(broker, "redrive-leaves", "missing-queue");
}

}  // namespace
}  // namespace txinbox::test
