// TLS, passwords and rights, on the broker's other ports. A refusal ends `run` with an error, whose text does not
// contain the password.

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/kafka.hpp>
#include <txinbox/txinbox.hpp>

#include "brokers/command_tests.hpp"
#include "kafka_broker.hpp"
#include "support/effects.hpp"
#include "support/environment.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

std::string secret_file(const std::string& name) { return variable("TXINBOX_BROKER_FOLDER") + "/" + name; }

std::string certificate(const std::string& name) { return secret_file("tls/" + name + ".pem"); }

std::string password() {
  std::ifstream file(secret_file("tls/password"));
  std::string text;
  file >> text;
  REQUIRE(text.size() == 32);
  return text;
}

/// "127.0.0.1:PORT". PORT is the broker's first port plus `ports`.
std::string address_behind(int ports) {
  const std::string first = broker_address();
  const auto colon = first.find(':');
  return first.substr(0, colon + 1) + std::to_string(std::stoi(first.substr(colon + 1)) + ports);
}

constexpr int secure = 2;
constexpr int elsewhere = 3;

KafkaOptions secure_options(KafkaBroker& broker, const std::string& topic, const std::string& user) {
  KafkaOptions options = broker.options(topic);
  options.brokers = address_behind(secure);
  options.properties.merge(std::map<std::string, std::string>{{"security.protocol", "SASL_SSL"},
                                                              {"ssl.ca.location", certificate("ca")},
                                                              {"sasl.mechanism", "PLAIN"},
                                                              {"sasl.username", user},
                                                              {"sasl.password", password()}});
  return options;
}

/// How `run` ends: the error, or "right" after one consumed message.
std::string end_of_run(const KafkaOptions& kafka, const EffectDatabase& db, const MessageOf& message_of) {
  Pool pool = db.pool();
  const auto source = open_kafka(kafka);
  std::stop_source stop;
  const auto listener = on_event([&](const RunEvent& event) {
    CHECK(std::string(event.reason).find(password()) == std::string::npos);
    if (event.source_event != nullptr) CHECK(event.source_event->text.find(password()) == std::string::npos);
    if (event.type == RunEventType::acknowledged) stop.request_stop();
  });
  TxConsumer consumer(pool, "svc", {.stop = stop.get_token(), .listeners = {listener}});
  try {
    const RunSummary summary = run(*source, consumer, message_of, add_effect);
    return summary.acknowledged > 0 ? "right" : "nothing";
  } catch (const Error& error) {
    const std::string text = error.what();
    CHECK_MESSAGE(text.find(password()) == std::string::npos, "the password is in the text");
    return std::string(to_string(error.code())) + ": " + text;
  }
}

Message body_as_key(const Incoming& in) { return {.business_key = std::string(in.body)}; }

bool begins_with(const std::string& text, const std::string& begin) { return text.starts_with(begin); }

TEST_CASE("Kafka with TLS and a password: run consumes, and ends with access_refused if one of them is wrong") {
  KafkaBroker broker;
  (void)broker.create("tls");
  broker.publish("tls", "m1", "k");
  broker.flush();
  EffectDatabase db;
  const auto ending = [&](auto change) {
    KafkaOptions options = secure_options(broker, "tls", "orders");
    change(options);
    return end_of_run(options, db, body_as_key);
  };
  std::string end = ending([](auto& o) { o.properties["ssl.ca.location"] = certificate("other"); });
  CHECK_MESSAGE(begins_with(end, "access_refused"), end);
  end = ending([](auto& o) { o.brokers = address_behind(elsewhere); });
  CHECK_MESSAGE(begins_with(end, "access_refused"), end);
  end = ending([](auto& o) { o.properties["sasl.password"] = "hunter2"; });
  CHECK_MESSAGE(begins_with(end, "access_refused"), end);
  CHECK(end.find("hunter2") == std::string::npos);
  CHECK(db.effects() == 0);
  CHECK(ending([](auto&) {}) == "right");
  CHECK(db.effects() == 1);
}

TEST_CASE("Kafka: if a right is missing, run ends with access_refused, and nothing is acknowledged") {
  KafkaBroker broker;
  (void)broker.create("rights");
  broker.publish("rights", "bad", "k");
  broker.flush();
  EffectDatabase db;
  const KafkaOptions guest = secure_options(broker, "rights", "guest");
  const MessageOf none_is_good = [](const Incoming&) -> Message { throw Error(ErrorCode::invalid_key, "bad"); };
  std::string end = end_of_run(guest, db, none_is_good);
  CHECK_MESSAGE(begins_with(end, "access_refused"), end);
  CHECK_MESSAGE(end.find("topic rights") != std::string::npos, end);

  Publisher& owner = broker.publisher();
  owner.allow("guest", RD_KAFKA_RESOURCE_TOPIC, "rights", RD_KAFKA_ACL_OPERATION_READ);
  owner.allow("guest", RD_KAFKA_RESOURCE_TOPIC, "rights.dead", RD_KAFKA_ACL_OPERATION_DESCRIBE);
  end = end_of_run(guest, db, none_is_good);
  CHECK_MESSAGE(begins_with(end, "access_refused"), end);  // the right to the group is missing
  CHECK_MESSAGE(end.find("GROUP_AUTHORIZATION_FAILED") != std::string::npos, end);

  owner.allow("guest", RD_KAFKA_RESOURCE_GROUP, guest.group, RD_KAFKA_ACL_OPERATION_READ);
  end = end_of_run(guest, db, none_is_good);
  CHECK_MESSAGE(begins_with(end, "access_refused"), end);  // the right to write dead letters is missing
  CHECK_MESSAGE(end.find("dead-letter topic rights.dead") != std::string::npos, end);

  owner.allow("guest", RD_KAFKA_RESOURCE_TOPIC, "rights.dead", RD_KAFKA_ACL_OPERATION_WRITE);
  CHECK(end_of_run(guest, db, none_is_good) == "right");
}

TEST_CASE("Kafka: without the right to write, a message of the outbox fails") {
  KafkaBroker broker;
  (void)broker.create("no-right");
  const KafkaOptions guest = secure_options(broker, "no-right", "guest");
  const auto publish = kafka_publisher({.brokers = guest.brokers, .properties = guest.properties});
  const std::vector<OutgoingMessage> one{{.topic = "no-right", .key = "k", .payload = "p", .id = "1"}};
  for (int round = 0; round < 2; ++round) {
    const auto result = publish(one).front();
    CHECK(result.status == PublishStatus::failed);
    CHECK_MESSAGE(result.error.find("AUTHORIZATION_FAILED") != std::string::npos, result.error);
  }
}

TEST_CASE("Kafka: the command takes the password from the environment, and never prints it") {
  KafkaBroker broker;
  (void)broker.create("secret");
  broker.publish("secret", Orders::line(1), "k");
  broker.flush();
  Orders t;
  const std::string url = "kafka://" + address_behind(secure) +
                          "/secret?group=g&security.protocol=SASL_SSL&sasl.mechanism=PLAIN&sasl.username=orders" +
                          "&ssl.ca.location=" + certificate("ca") + "&dead_letters=secret.dead";
  const auto consume = [&](const std::string& secret) {
    ::setenv("TXINBOX_KAFKA_PASSWORD", secret.c_str(), 1);
    const Ended ended = run(Orders::arguments({"--from", url, "--idle-exit", "4s"}), t.db.url());
    ::unsetenv("TXINBOX_KAFKA_PASSWORD");
    CHECK((ended.out + ended.err).find(secret) == std::string::npos);
    return ended;
  };
  const Ended refused = consume("hunter2");
  CHECK(refused.status == 3);
  CHECK_MESSAGE(refused.err.find("sasl.password (TXINBOX_KAFKA_PASSWORD") != std::string::npos, refused.err);
  CHECK(consume(password()).status == 0);
  CHECK(t.orders() == 1);
}

}  // namespace
}  // namespace txinbox::test
