// RocketMQ with TLS.

#include <cstdlib>
#include <string>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "rocketmq_broker.hpp"
#include "support/effects.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("RocketMQ: a connection with TLS is made to a proxy that is trusted, and to no other") {
  RocketMqBroker broker;
  (void)broker.create("encrypted");
  const std::string tls = std::string(std::getenv("TXINBOX_BROKER_FOLDER")) + "/tls/";
  RocketMqPublisherOptions to_broker = broker.publisher_options();
  to_broker.tls = true;
  const OutgoingMessage message{.topic = "encrypted", .key = "k", .payload = "m", .id = "i"};
  to_broker.ca_file = tls + "other.pem";
  CHECK_THROWS((void)rocketmq_publisher(to_broker)({&message, 1}));
  to_broker.ca_file = tls + "ca.pem";
  CHECK(rocketmq_publisher(to_broker)({&message, 1}).front().status == PublishStatus::confirmed);

  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "svc");
  RocketMqOptions options = RocketMqBroker::options("encrypted");
  options.tls = true;
  const auto consume = [&](const std::string& ca_file) {
    options.ca_file = ca_file;
    return thrown_by([&] {
      const auto source = open_rocketmq(options);
      (void)run(*source, consumer, key_from_header("id"), add_effect, {.idle_exit = 5s});
    });
  };
  CHECK(consume(tls + "other.pem") == "access_refused");
  CHECK(consume(tls + "missing.pem") == "invalid_argument");
  CHECK(db.effects() == 0);
  CHECK(consume(tls + "ca.pem") == "nothing");
  CHECK(db.effects_of("i") == 1);
}

}  // namespace
}  // namespace txinbox::test
