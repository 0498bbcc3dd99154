// Streams and quorum queues of a real RabbitMQ broker.

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/rabbitmq.hpp>
#include <txinbox/txinbox.hpp>

#include "rabbitmq_broker.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("RabbitMQ: a stream is refused with its name and the remedy; other queues are not") {
  RabbitMqBroker broker;
  (void)broker.create_stream("stream");
  (void)broker.create_quorum("no-stream", 5);
  const auto error_of = [](const std::string& queue) -> std::string {
    const auto source = open_rabbitmq(RabbitMqBroker::options(queue));
    try {
      for (int i = 0; i < 100 && !source->status().connected; ++i) (void)source->poll(1, 100ms);
      return source->status().connected ? "" : "not connected";
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::broker_refused);
      return error.what();
    }
  };
  CHECK(error_of("no-stream").empty());
  const std::string error = error_of("stream");
  CHECK_MESSAGE(error.find("'stream'") != std::string::npos, error);
  CHECK_MESSAGE(error.find("quorum queue") != std::string::npos, error);
}

/// Consumes a queue until a message comes or there is a warning, and gives the message back to the broker. Returns the
/// number of the delivery. None if no message came.
std::optional<int> deliver_once(const RabbitMqOptions& options, std::vector<std::string>& warnings) {
  const auto source = open_rabbitmq(options);
  source->on_event([&](const SourceEvent& event) {
    if (event.type == SourceEventType::warning) warnings.push_back(event.text);
  });
  std::vector<Incoming> incoming;
  const std::size_t before = warnings.size();
  for (int i = 0; i < 100 && incoming.empty() && warnings.size() == before; ++i) incoming = source->poll(10, 100ms);
  return incoming.empty() ? std::nullopt : std::optional(incoming[0].deliveries);
}

TEST_CASE(
    "RabbitMQ: a message near the delivery limit of its quorum queue becomes a dead letter before the broker drops "
    "it") {
  RabbitMqBroker broker;
  (void)broker.create_quorum("limited", 3);
  // A producer cannot make the source believe that a message has come often.
  amqp_table_entry_t entry{};
  entry.key = amqp_cstring_bytes("x-delivery-count");
  entry.value.kind = AMQP_FIELD_KIND_I64;
  entry.value.value.i64 = 7;
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_HEADERS_FLAG;
  properties.headers = {.num_entries = 1, .entries = &entry};
  broker.publish("limited", std::string(5000, 'x'), &properties);
  broker.flush();
  RabbitMqOptions options = RabbitMqBroker::options("limited");
  options.delivery_limit = 3;
  std::vector<std::string> warnings;
  CHECK(deliver_once(options, warnings).has_value());
  CHECK(deliver_once(options, warnings) == 2);
  CHECK(warnings.empty());
  // The dead letter is refused. The next delivery, which is the last one, publishes it.
  RabbitMqBroker::set_max_message_size(1000);
  CHECK_FALSE(deliver_once(options, warnings).has_value());
  RabbitMqBroker::set_max_message_size(2'000'000);
  CHECK(warnings.size() == 1);
  CHECK_FALSE(deliver_once(options, warnings).has_value());
  CHECK(warnings.size() == 2);
  CHECK(broker.ready("limited") == 0);
  CHECK(broker.ready("limited.dead") == 1);

  RabbitMqOptions dead = RabbitMqBroker::options("limited.dead");
  dead.dead_letters.clear();
  const auto source = open_rabbitmq(dead);
  std::vector<Incoming> letters;
  for (int i = 0; i < 100 && letters.empty(); ++i) letters = source->poll(10, 100ms);
  REQUIRE(letters.size() == 1);
  CHECK(letters[0].body.size() == 5000);
  CHECK(letters[0].header("txinbox-reason") == "delivery_limit");
}

TEST_CASE(
    "RabbitMQ: if many messages near the delivery limit cannot become dead letters, the source ends with an error") {
  constexpr std::size_t count = 500;
  RabbitMqBroker broker;
  (void)broker.create_quorum("forbidden-limit", 20);
  for (std::size_t i = 0; i < count; ++i) broker.publish("forbidden-limit", "m" + std::to_string(i), nullptr);
  broker.flush();
  RabbitMqOptions options = RabbitMqBroker::options("forbidden-limit");
  {
    const auto source = open_rabbitmq(options);  // it gives all messages back
    std::size_t got = 0;
    for (int i = 0; i < 100 && got < count; ++i) got += source->poll(count, 100ms).size();
    REQUIRE(got == count);
  }
  options.delivery_limit = 2;
  RabbitMqBroker::allow_writes("^$");
  const auto source = open_rabbitmq(options);
  const std::string thrown = thrown_by([&] {
    for (int i = 0; i < 100; ++i) (void)source->poll(count, 100ms);
  });
  RabbitMqBroker::allow_writes(".*");
  CHECK(thrown == "access_refused");
}

TEST_CASE("RabbitMQ: a warning names delivery_limit if a queue counts deliveries and the limit is not known") {
  RabbitMqBroker broker;
  (void)broker.create_quorum("unknown-limit", 5);
  broker.publish("unknown-limit", "m", nullptr);
  broker.flush();
  const RabbitMqOptions options = RabbitMqBroker::options("unknown-limit");
  std::vector<std::string> warnings;
  CHECK(deliver_once(options, warnings) == 1);
  CHECK(warnings.empty());
  CHECK(deliver_once(options, warnings) == 2);
  REQUIRE(warnings.size() == 1);
  CHECK_MESSAGE(warnings[0].find("delivery_limit") != std::string::npos, warnings[0]);
}

}  // namespace
}  // namespace txinbox::test
