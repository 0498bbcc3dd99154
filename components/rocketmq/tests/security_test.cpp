// RocketMQ with TLS and users, and the relay of the command.

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "rocketmq_broker.hpp"
#include "support/command.hpp"
#include "support/effects.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("RocketMQ: with TLS, the source connects only to a trusted proxy") {
  RocketMqBroker broker;
  (void)broker.create("encrypted");
  const std::string tls = std::string(std::getenv("TXINBOX_BROKER_FOLDER")) + "/tls/";
  RocketMqPublisherOptions to_broker = broker.publisher_options();
  to_broker.server.tls = true;
  const OutgoingMessage message{.topic = "encrypted", .key = "k", .payload = "m", .id = "i"};
  to_broker.server.ca_file = tls + "other.pem";
  CHECK_THROWS((void)rocketmq_publisher(to_broker)({&message, 1}));
  to_broker.server.ca_file = tls + "ca.pem";
  CHECK(rocketmq_publisher(to_broker)({&message, 1}).front().status == PublishStatus::confirmed);

  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "svc");
  RocketMqOptions options = RocketMqBroker::options("encrypted");
  options.server.tls = true;
  const auto consume = [&](const std::string& ca_file) {
    options.server.ca_file = ca_file;
    return thrown_by([&] {
      const auto source = open_rocketmq(options);
      (void)run(*source, consumer, key_from("@header:id"), add_effect, {.idle_exit = 5s});
    });
  };
  CHECK(consume(tls + "other.pem") == "access_refused");
  CHECK(consume(tls + "missing.pem") == "invalid_argument");
  CHECK(db.effects() == 0);
  CHECK(consume(tls + "ca.pem") == "nothing");
  CHECK(db.effects_of("i") == 1);
}

/// While this object exists, the broker requires a user and a secret.
class WithUsers {
 public:
  explicit WithUsers(const RocketMqBroker& broker) : broker_(broker) {
    std::ofstream(file_) << "hunter2-and-more";
    restart();
  }
  ~WithUsers() {
    std::filesystem::remove(file_);
    restart();
  }
  WithUsers(const WithUsers&) = delete;
  WithUsers& operator=(const WithUsers&) = delete;

 private:
  void restart() const {
    broker_.kill();
    broker_.start();
  }

  const RocketMqBroker& broker_;
  const std::string file_ = std::string(std::getenv("TXINBOX_BROKER_FOLDER")) + "/secret";
};

TEST_CASE("RocketMQ: a broker that asks for users accepts the right secret, and refuses any other") {
  RocketMqBroker broker;
  (void)broker.create("users");
  const WithUsers users(broker);
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "svc");
  const auto try_with = [&](const std::string& key, const std::string& secret) {
    RocketMqPublisherOptions to_broker = broker.publisher_options();
    to_broker.server.access_key = key;
    to_broker.server.secret = secret;
    const OutgoingMessage message{.topic = "users", .key = "k", .payload = "m", .id = "i"};
    const Publisher publish = rocketmq_publisher(to_broker);
    PublishResult result = publish({&message, 1}).front();
    const auto give_up = std::chrono::steady_clock::now() + 30s;  // the topic is not known immediately
    while (key == "orders" && secret == "hunter2-and-more" && result.status != PublishStatus::confirmed &&
           std::chrono::steady_clock::now() < give_up) {
      std::this_thread::sleep_for(200ms);
      result = publish({&message, 1}).front();
    }
    CHECK(result.error.find(secret.empty() ? "hunter2" : secret) == std::string::npos);
    RocketMqOptions options = RocketMqBroker::options("users");
    options.server.access_key = key;
    options.server.secret = secret;
    const auto source = open_rocketmq(options);
    const std::string thrown =
        thrown_by([&] { (void)run(*source, consumer, key_from("@header:id"), add_effect, {.idle_exit = 5s}); });
    return std::string(to_string(result.status)) + ", " + thrown;
  };
  CHECK(try_with("", "") == "failed, access_refused");
  CHECK(try_with("orders", "another") == "failed, access_refused");
  CHECK(try_with("nobody", "hunter2-and-more") == "failed, access_refused");
  CHECK(db.effects() == 0);
  CHECK(try_with("orders", "hunter2-and-more") == "confirmed, nothing");
  CHECK(db.effects_of("i") == 1);
}

TEST_CASE("RocketMQ: the command relays the outbox to the broker") {
  RocketMqBroker broker;
  (void)broker.create("relayed");
  const TestDatabase db;
  {
    const auto sql = db.session();
    for (int i = 0; i < 3; ++i) {
      Outbox::add(*sql, {.topic = "relayed", .key = "k", .type = "T", .payload = "m" + std::to_string(i)});
    }
  }
  const Ended ended = run({"relay", "--to", "rocketmq://" + broker_address(), "--until-empty"}, db.url());
  CHECK_MESSAGE(ended.status == 0, ended.err);
  CHECK(db.number("select count(*) from txinbox_outbox_message") == 0);
  EffectDatabase receiver;
  Pool pool = receiver.pool();
  TxConsumer consumer(pool, "stock");
  const auto source = open_rocketmq(RocketMqBroker::options("relayed"));
  CHECK(run(*source, consumer, key_from("@header:id"), add_effect, {.idle_exit = 5s}).consumed == 3);
}

}  // namespace
}  // namespace txinbox::test
