// Dead letters that a real RabbitMQ broker does not accept as they are.

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "rabbitmq_broker.hpp"
#include "support/effects.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

/// A key that is empty is not valid: the message becomes a dead letter.
Message body_is_key(const Incoming& in) { return {.business_key = in.body.size() < 10 ? std::string(in.body) : ""}; }

/// A consumer of a queue, and what its source reported.
struct Service {
  explicit Service(const std::string& queue) : source(open_rabbitmq(RabbitMqBroker::options(queue))) {}

  void note(const RunEvent& event) {
    if (event.type == RunEventType::dead_letter_failed) ++refused;
    if (event.type == RunEventType::source && event.source_event->type == SourceEventType::disconnected) ++disconnected;
    if (on_event) on_event(event);
  }

  RunSummary run_until_idle() { return run(*source, consumer, body_is_key, add_effect, options); }

  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer{pool, "svc", {.listeners = {txinbox::on_event([this](const RunEvent& event) { note(event); })}}};
  std::unique_ptr<Source> source;
  RunOptions options{.backoff = 5ms, .max_backoff = 20ms, .idle_exit = 1s};
  std::function<void(const RunEvent&)> on_event;
  int refused = 0;
  int disconnected = 0;
};

/// Takes the only message of a queue. Returns its headers, as text.
std::map<std::string, std::string> headers_of_letter(const std::string& queue) {
  RabbitMqOptions options = RabbitMqBroker::options(queue);
  options.dead_letters.clear();
  const auto source = open_rabbitmq(options);
  std::vector<Incoming> letters;
  for (int i = 0; i < 100 && letters.empty(); ++i) letters = source->poll(10, 100ms);
  REQUIRE(letters.size() == 1);
  std::map<std::string, std::string> headers;
  for (const IncomingHeader& each : letters[0].headers) headers.emplace(each.name, each.value);
  const Incoming* const done = &letters[0];
  source->acknowledge({&done, 1});
  return headers;
}

// A message that is taken and not acknowledged counts against the limit. So a service that is started again and again
// must not take one.
TEST_CASE("RabbitMQ: if the user may not publish dead letters, run ends before it takes a message") {
  RabbitMqBroker broker;
  (void)broker.create_quorum("forbidden", 1);
  for (const char* body : {"", "m1", "m2", "m3"}) broker.publish("forbidden", body, nullptr);
  broker.flush();
  RabbitMqBroker::allow_writes("^$");
  for (int start = 0; start < 5; ++start) {
    Service service("forbidden");
    CHECK(thrown_by([&] { (void)service.run_until_idle(); }) == "access_refused");
    CHECK(service.disconnected == 0);
    CHECK(service.db.effects() == 0);
  }
  RabbitMqBroker::allow_writes(".*");
  Service service("forbidden");
  const RunSummary summary = service.run_until_idle();
  CHECK(summary.dead_letters == 1);
  CHECK(summary.consumed == 3);
  CHECK(broker.ready("forbidden") == 0);
  CHECK(broker.ready("forbidden.dead") == 1);
}

TEST_CASE("RabbitMQ: a service that starts while the broker accepts no messages consumes those that are there") {
  RabbitMqBroker broker;
  (void)broker.create("full-memory");
  for (const char* body : {"m1", "m2", "m3"}) broker.publish("full-memory", body, nullptr);
  broker.flush();
  RabbitMqBroker::set_memory_limit("1MB");
  {
    Service service("full-memory");
    CHECK(service.run_until_idle().consumed == 3);
  }
  RabbitMqBroker::set_memory_limit("512MB");
}

TEST_CASE(
    "RabbitMQ: if the user loses the right to publish dead letters, run ends with an error, and no message is lost") {
  RabbitMqBroker broker;
  (void)broker.create_quorum("forbidden-later", 1);
  for (const char* body : {"", "m1", "m2", "m3"}) broker.publish("forbidden-later", body, nullptr);
  broker.flush();
  {
    Service service("forbidden-later");
    service.on_event = [](const RunEvent& event) {
      if (event.type == RunEventType::source && event.source_event->type == SourceEventType::connected) {
        RabbitMqBroker::allow_writes("^$");
      }
    };
    CHECK(thrown_by([&] { (void)service.run_until_idle(); }) == "access_refused");
    CHECK(service.disconnected == 0);
  }
  RabbitMqBroker::allow_writes(".*");
  Service service("forbidden-later");
  CHECK(service.run_until_idle().dead_letters == 1);
  CHECK(broker.ready("forbidden-later") == 0);
  CHECK(broker.ready("forbidden-later.dead") == 1);
}

TEST_CASE("RabbitMQ: a dead letter whose headers do not fit loses the headers of the message, and others go on") {
  RabbitMqBroker broker;
  (void)broker.create("large-headers");
  constexpr int count = 129;
  const std::string value(1006, 'x');
  std::vector<std::string> names;
  std::vector<amqp_table_entry_t> entries(count);
  names.reserve(count);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries[i].key = amqp_cstring_bytes(names.emplace_back("h" + std::to_string(i)).c_str());
    entries[i].value.kind = AMQP_FIELD_KIND_UTF8;
    entries[i].value.value.bytes = amqp_cstring_bytes(value.c_str());
  }
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_MESSAGE_ID_FLAG;
  properties.headers = {.num_entries = count, .entries = entries.data()};
  properties.message_id = amqp_cstring_bytes("id-1");
  broker.publish("large-headers", "", &properties);
  for (const char* body : {"m1", "m2"}) broker.publish("large-headers", body, nullptr);
  broker.flush();
  Service service("large-headers");
  const RunSummary summary = service.run_until_idle();
  CHECK(summary.dead_letters == 1);
  CHECK(summary.consumed == 2);
  CHECK(service.refused == 0);
  CHECK(service.disconnected == 0);
  auto headers = headers_of_letter("large-headers.dead");
  CHECK(headers["txinbox-reason"] == "invalid_key");
  CHECK(headers["txinbox-dropped-headers"] == std::to_string(count));
  CHECK(headers["message-id"] == "id-1");
  CHECK_FALSE(headers.contains("h0"));
}

TEST_CASE("RabbitMQ: a dead letter is not routed by the headers CC and BCC of the message") {
  RabbitMqBroker broker;
  (void)broker.create("copies");
  (void)broker.create("elsewhere");
  amqp_field_value_t queue{};
  queue.kind = AMQP_FIELD_KIND_UTF8;
  queue.value.bytes = amqp_cstring_bytes("elsewhere");
  std::vector<amqp_table_entry_t> entries(2);
  entries[0].key = amqp_cstring_bytes("CC");
  entries[1].key = amqp_cstring_bytes("BCC");
  for (amqp_table_entry_t& entry : entries) {
    entry.value.kind = AMQP_FIELD_KIND_ARRAY;
    entry.value.value.array = {.num_entries = 1, .entries = &queue};
  }
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_HEADERS_FLAG;
  properties.headers = {.num_entries = 2, .entries = entries.data()};
  broker.publish("copies", "", &properties);
  broker.flush();
  const unsigned copies = broker.ready("elsewhere");
  CHECK(copies >= 1);
  Service service("copies");
  CHECK(service.run_until_idle().dead_letters == 1);
  CHECK(broker.ready("elsewhere") == copies);
  const auto headers = headers_of_letter("copies.dead");
  CHECK(headers.contains("txinbox-cc"));
  CHECK_FALSE(headers.contains("CC"));
  CHECK_FALSE(headers.contains("BCC"));
}

TEST_CASE("RabbitMQ: after a lost connection, messages are consumed although the dead-letter queue is missing") {
  RabbitMqBroker broker;
  (void)broker.create("no-letters");
  const auto source = open_rabbitmq(RabbitMqBroker::options("no-letters"));
  for (int i = 0; i < 100 && !source->status().connected; ++i) (void)source->poll(1, 100ms);
  broker.remove("no-letters.dead");
  RabbitMqBroker::close_connections();
  for (int i = 0; i < 100 && source->status().reconnects == 0; ++i) (void)source->poll(1, 100ms);
  CHECK(source->status().reconnects == 1);
  CHECK(source->status().connected);
}

}  // namespace
}  // namespace txinbox::test
