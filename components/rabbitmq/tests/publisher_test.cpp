// The publisher of the outbox with a real broker.

#include <chrono>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/rabbitmq.hpp>
#include <txinbox/txinbox.hpp>

#include "rabbitmq_broker.hpp"
#include "support/command.hpp"
#include "support/effects.hpp"
#include "support/eventually.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

RabbitMqPublisherOptions to_broker() {
  return rabbitmq_publisher_options_from_url("amqp://guest@" + broker_address() + "/%2F");
}

OutgoingMessage message_for(std::string queue, const std::string& id, std::string payload = "body") {
  return {.topic = std::move(queue), .key = "k" + id, .payload = std::move(payload), .id = id};
}

/// Repeats the call until the message is confirmed. Returns false if this takes too long.
bool comes_through(const Publisher& publish, const OutgoingMessage& message) {
  const std::vector<OutgoingMessage> one{message};
  const auto give_up = std::chrono::steady_clock::now() + 1min;
  while (std::chrono::steady_clock::now() < give_up) {
    try {
      if (publish(one).front().status == PublishStatus::confirmed) return true;
    } catch (const std::runtime_error&) {
      std::this_thread::sleep_for(50ms);
    }
  }
  return false;
}

TEST_CASE("RabbitMQ: a published message arrives with id, type, key and headers, and two copies take effect once") {
  RabbitMqBroker broker;
  (void)broker.create("published");
  const EffectDatabase sender;
  Pool pool = sender.pool();
  const std::string id =
      Outbox::add(*sender.session(), {.topic = "published",
                                      .key = "order1",
                                      .type = "OrderBooked",
                                      .payload = "body",
                                      .headers = {{"traceparent", "00-1"}, {"message-id", "of another"}}});
  const Publisher publish = rabbitmq_publisher(to_broker());
  // A relay that crashes after the confirmation publishes again.
  const std::vector<OutgoingMessage> before{message_for("published", id)};
  REQUIRE(publish(before).front().status == PublishStatus::confirmed);
  {
    const OutboxRelay relay(pool, publish, {.poll = 10ms});
    CHECK(outbox_becomes_empty(sender));
  }

  EffectDatabase receiver;
  Pool its_pool = receiver.pool();
  TxConsumer stock(its_pool, "stock");
  std::map<std::string, std::string> seen;
  const MessageOf by_id = key_from("@header:message-id");
  const MessageOf message_of = [&](const Incoming& in) {
    seen["body"] = in.body;
    for (const IncomingHeader& header : in.headers) seen[std::string(header.name)] = header.value;
    return by_id(in);
  };
  const auto source = open_rabbitmq(RabbitMqBroker::options("published"));
  const RunSummary summary = run(*source, stock, message_of, add_effect, {.idle_exit = 1s});
  CHECK(summary.consumed == 1);
  CHECK(summary.already_consumed == 1);
  CHECK(receiver.effects_of(id) == 1);
  CHECK(seen == std::map<std::string, std::string>{{"header:message-id", "of another"},
                                                   {"key", "order1"},
                                                   {"body", "body"},
                                                   {"message-id", id},
                                                   {"type", "OrderBooked"},
                                                   {"traceparent", "00-1"}});
}

TEST_CASE("RabbitMQ: a message that no queue accepts is never confirmed, and the other messages of the call are") {
  RabbitMqBroker broker;
  (void)broker.create("routed");
  const Publisher publish = rabbitmq_publisher(to_broker());
  std::vector<OutgoingMessage> messages;
  for (int i = 0; i < 200; ++i) {
    messages.push_back(
        message_for(i % 3 == 0 ? "no-such-queue" : "routed", std::to_string(i), std::string(20'000, 'x')));
  }
  for (int round = 0; round < 2; ++round) {
    const auto results = publish(messages);
    REQUIRE(results.size() == messages.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      CAPTURE(i);
      CHECK(results[i].status == (i % 3 == 0 ? PublishStatus::failed : PublishStatus::confirmed));
      CHECK(results[i].error == (i % 3 == 0 ? "the default exchange has no queue for 'no-such-queue' (NO_ROUTE)" : ""));
    }
  }
  CHECK(broker.ready("routed") == 2 * 133);
}

TEST_CASE("RabbitMQ: a message that is invalid for the broker or AMQP is rejected, and the others are confirmed") {
  RabbitMqBroker broker;
  (void)broker.create("sizes");
  const Publisher publish = rabbitmq_publisher(to_broker());
  std::vector<OutgoingMessage> messages;
  for (int i = 0; i < 6; ++i) messages.push_back(message_for("sizes", std::to_string(i)));
  messages[1].payload.assign(3UL * 1024 * 1024, 'x');  // tests/brokers/rabbitmq.sh sets the limit
  messages[2].headers[std::string(256, 'n')] = "v";
  messages[3].headers["long"].assign(200'000, 'v');
  messages[4].headers["CC"] = "the broker wants a list here";
  const auto results = publish(messages);
  REQUIRE(results.size() == 6);
  for (const std::size_t bad : {1UL, 2UL, 3UL, 4UL}) {
    CAPTURE(bad);
    CHECK(results[bad].status == PublishStatus::rejected);
    CHECK_FALSE(results[bad].error.empty());
  }
  CHECK_MESSAGE(results[0].status == PublishStatus::confirmed, results[0].error);
  CHECK_MESSAGE(results[5].status == PublishStatus::confirmed, results[5].error);
  CHECK(broker.ready("sizes") >= 2);
  const std::vector<OutgoingMessage> next{message_for("sizes", "next")};
  CHECK(publish(next).front().status == PublishStatus::confirmed);
}

TEST_CASE("RabbitMQ: after a nack, only the messages that the broker has refused fail") {
  RabbitMqBroker broker;
  amqp_table_entry_t entries[2] = {};
  entries[0].key = amqp_cstring_bytes("x-max-length");
  entries[0].value.kind = AMQP_FIELD_KIND_I32;
  entries[0].value.value.i32 = 3;
  entries[1].key = amqp_cstring_bytes("x-overflow");
  entries[1].value.kind = AMQP_FIELD_KIND_UTF8;
  entries[1].value.value.bytes = amqp_cstring_bytes("reject-publish");
  (void)broker.create("full", {.num_entries = 2, .entries = entries});
  const Publisher publish = rabbitmq_publisher(to_broker());
  int confirmed = 0;
  int failed = 0;
  for (int i = 0; i < 20; ++i) {
    const std::vector<OutgoingMessage> one{message_for("full", std::to_string(i))};
    const auto result = publish(one).front();
    (result.status == PublishStatus::confirmed ? confirmed : failed) += 1;
    CHECK(result.status != PublishStatus::rejected);
  }
  CHECK(failed >= 1);
  CHECK(broker.ready("full") == static_cast<unsigned>(confirmed));
}

TEST_CASE("RabbitMQ: a broker that is killed keeps the confirmed messages, and the publisher connects again") {
  RabbitMqBroker broker;
  (void)broker.create("survives");
  const Publisher publish = rabbitmq_publisher(to_broker());
  std::vector<OutgoingMessage> messages;
  for (int i = 0; i < 100; ++i) messages.push_back(message_for("survives", "a" + std::to_string(i)));
  for (const PublishResult& result : publish(messages)) REQUIRE(result.status == PublishStatus::confirmed);
  broker.kill();
  CHECK_THROWS_AS(publish(messages), std::runtime_error);
  broker.start();
  CHECK(comes_through(publish, message_for("survives", "b")));
  CHECK(broker.ready("survives") >= 101);
}

TEST_CASE("RabbitMQ: if the broker is killed during a call, it keeps the messages that it has confirmed") {
  RabbitMqBroker broker;
  (void)broker.create("between");
  const Publisher publish = rabbitmq_publisher(to_broker());
  std::vector<std::string> confirmed;
  bool was_lost = false;
  std::thread killer;
  for (int round = 0; !was_lost && round < 10'000; ++round) {
    std::vector<OutgoingMessage> messages;
    for (int i = 0; i < 300; ++i) {
      messages.push_back(message_for("between", std::to_string(round) + "." + std::to_string(i)));
    }
    try {
      const auto results = publish(messages);
      for (std::size_t i = 0; i < results.size(); ++i) {
        if (results[i].status == PublishStatus::confirmed) confirmed.push_back(messages[i].id);
        if (results[i].status == PublishStatus::failed) was_lost = true;
      }
    } catch (const std::runtime_error&) {
      was_lost = true;
    }
    if (round == 0) killer = std::thread([&] { broker.kill(); });
  }
  killer.join();
  CHECK(was_lost);
  REQUIRE(confirmed.size() >= 300);
  broker.start();
  (void)broker.create("between");  // a broker that is killed can forget a queue that is still empty

  EffectDatabase receiver;
  Pool pool = receiver.pool();
  TxConsumer consumer(pool, "stock");
  const auto source = open_rabbitmq(RabbitMqBroker::options("between"));
  (void)run(*source, consumer, key_from("@header:message-id"), add_effect, {.idle_exit = 2s});
  std::size_t lost = 0;
  for (const std::string& id : confirmed) lost += receiver.effects_of(id) == 1 ? 0U : 1U;
  CHECK(lost == 0);
  CHECK(receiver.effects() >= static_cast<long long>(confirmed.size()));
}

TEST_CASE("RabbitMQ: if the exchange is missing, the user is refused or there is no broker, the call throws") {
  RabbitMqBroker broker;
  (void)broker.create("there");
  const auto error_of = [](auto change) {
    RabbitMqPublisherOptions options = to_broker();
    options.timeout = 5s;
    change(options);
    const Publisher publish = rabbitmq_publisher(options);
    const std::vector<OutgoingMessage> one{message_for("there", "1")};
    return thrown_by([&] { (void)publish(one); });
  };
  CHECK(error_of([](auto&) {}) == "nothing");
  CHECK(error_of([](auto& o) { o.exchange = "amq.direct"; }) == "nothing");
  CHECK(error_of([](auto& o) { o.exchange = "missing"; }) == "broker_refused");
  CHECK(error_of([](auto& o) { o.server.password = "wrong"; }) == "access_refused");
  CHECK(error_of([](auto& o) { o.server.vhost = "missing"; }) == "access_refused");
  RabbitMqPublisherOptions away = to_broker();
  away.server.port = 1;
  const std::vector<OutgoingMessage> one{message_for("there", "1")};
  CHECK_THROWS_AS(rabbitmq_publisher(away)(one), std::runtime_error);
}

TEST_CASE("RabbitMQ: the publisher encrypts, and refuses a broker with another certificate") {
  RabbitMqBroker broker;
  (void)broker.create("encrypted-out");
  const char* folder = std::getenv("TXINBOX_BROKER_FOLDER");
  REQUIRE(folder != nullptr);
  RabbitMqPublisherOptions options = to_broker();
  options.server.host = "localhost";
  options.server.port = static_cast<std::uint16_t>(options.server.port + 2);
  options.server.tls = true;
  const std::vector<OutgoingMessage> one{message_for("encrypted-out", "1")};
  options.server.ca_file = std::string(folder) + "/tls/other.pem";
  CHECK(thrown_by([&] { (void)rabbitmq_publisher(options)(one); }) == "access_refused");
  options.server.ca_file = std::string(folder) + "/tls/ca.pem";
  CHECK(rabbitmq_publisher(options)(one).front().status == PublishStatus::confirmed);
  CHECK(broker.ready("encrypted-out") == 1);
}

TEST_CASE("RabbitMQ: the command relays the outbox to the broker") {
  RabbitMqBroker broker;
  (void)broker.create("relayed");
  const TestDatabase db;
  for (int i = 0; i < 50; ++i) {
    Outbox::add(*db.session(), {.topic = "relayed", .key = std::to_string(i % 7), .payload = std::to_string(i)});
  }
  const std::string url = "amqp://guest@" + broker_address() + "/%2F";
  const Ended ended = run(Command::Arguments{"relay", "--to", url, "--until-empty"}, db.url());
  CAPTURE(ended.err);
  CHECK(ended.status == 0);
  CHECK(ended.last_line() == "published 50, failed attempts 0, parked 0");
  CHECK(db.number("select count(*) from txinbox_outbox_message") == 0);
  CHECK(broker.ready("relayed") == 50);
}

}  // namespace
}  // namespace txinbox::test
