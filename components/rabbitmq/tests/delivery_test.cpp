// A RabbitMQ source reads a message's properties and headers, without a broker.

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "outgoing_properties.hpp"
#include "rabbitmq_delivery.hpp"

namespace txinbox::test {
namespace {

using Names = std::vector<std::pair<std::string, std::string>>;

amqp_table_entry_t header(const char* name, const char* value) {
  amqp_table_entry_t entry{};
  entry.key = amqp_cstring_bytes(name);
  entry.value.kind = AMQP_FIELD_KIND_UTF8;
  entry.value.value.bytes = amqp_cstring_bytes(value);
  return entry;
}

Incoming received(const amqp_basic_properties_t& properties, bool is_redelivered = false) {
  amqp_message_t message{};
  message.properties = properties;
  message.body = amqp_bytes_malloc(1);
  *static_cast<char*>(message.body.bytes) = 'b';
  init_amqp_pool(&message.pool, 4096);
  amqp_basic_deliver_t delivery{};
  delivery.redelivered = is_redelivered ? 1 : 0;
  return rabbitmq::incoming_of(delivery, message, "queue", 1);
}

Names names_of(const Incoming& incoming) {
  Names found;
  for (const IncomingHeader& each : incoming.headers) found.emplace_back(each.name, each.value);
  return found;
}

Names names_of(const amqp_table_t& table) {
  const auto text = [](const amqp_bytes_t& bytes) {
    return std::string(static_cast<const char*>(bytes.bytes), bytes.len);
  };
  Names found;
  for (int i = 0; i < table.num_entries; ++i) {
    found.emplace_back(text(table.entries[i].key), text(table.entries[i].value.value.bytes));
  }
  return found;
}

TEST_CASE("RabbitMQ: a header of the producer does not shadow a property") {
  std::array<amqp_table_entry_t, 4> entries{header("message-id", "old"), header("type", "old-type"),
                                            header("app-id", "of-header"), header("Message-Id", "other-case")};
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_MESSAGE_ID_FLAG | AMQP_BASIC_TYPE_FLAG;
  properties.headers = {.num_entries = 4, .entries = entries.data()};
  properties.message_id = amqp_cstring_bytes("new");
  properties.type = amqp_cstring_bytes("new-type");
  const Incoming incoming = received(properties);
  CHECK(names_of(incoming) == Names{{"message-id", "new"},
                                    {"type", "new-type"},
                                    {"header:message-id", "old"},
                                    {"header:type", "old-type"},
                                    {"app-id", "of-header"},
                                    {"Message-Id", "other-case"}});
}

TEST_CASE("RabbitMQ: without the property message-id, no header is taken for it") {
  amqp_table_entry_t entry = header("message-id", "old");
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_HEADERS_FLAG;
  properties.headers = {.num_entries = 1, .entries = &entry};
  const Incoming incoming = received(properties);
  CHECK_FALSE(incoming.header("message-id"));
  CHECK(incoming.header("header:message-id") == "old");
}

TEST_CASE("RabbitMQ: only the broker's own header counts the deliveries") {
  amqp_table_entry_t entry = header("x-delivery-count", "");
  entry.value.kind = AMQP_FIELD_KIND_I64;
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_HEADERS_FLAG;
  properties.headers = {.num_entries = 1, .entries = &entry};
  const auto deliveries = [&](std::int64_t count, bool is_redelivered) {
    entry.value.value.i64 = count;
    return received(properties, is_redelivered).deliveries;
  };
  CHECK(deliveries(0, false) == 1);
  CHECK(deliveries(7, false) == 1);  // the broker has counted none
  CHECK(deliveries(7, true) == 8);
  CHECK(deliveries(-3, true) == 2);
  CHECK(deliveries(std::numeric_limits<std::int64_t>::max(), true) == std::numeric_limits<int>::max());
}

TEST_CASE("RabbitMQ: a published header does not shadow the message's id, type or key") {
  const OutgoingMessage message{.topic = "q",
                                .key = "new-key",
                                .type = "new-type",
                                .headers = {{"key", "old-key"},
                                            {"message-id", "old-id"},
                                            {"header:message-id", "older-id"},
                                            {"type", "old-type"},
                                            {"traceparent", "00-1"}},
                                .id = "new-id"};
  const rabbitmq::OutgoingProperties outgoing(message);
  CHECK(names_of(outgoing.get().headers) == Names{{"key", "new-key"},
                                                  {"header:message-id", "older-id"},
                                                  {"header:key", "old-key"},
                                                  {"header:header:message-id", "old-id"},
                                                  {"traceparent", "00-1"},
                                                  {"header:type", "old-type"}});
  const OutgoingMessage keyless{.topic = "q", .headers = {{"key", "old-key"}}, .id = "new-id"};
  const rabbitmq::OutgoingProperties without(keyless);
  CHECK(names_of(without.get().headers) == Names{{"header:key", "old-key"}});
}

TEST_CASE("RabbitMQ: a second dead letter of a message has the headers of the newest only") {
  std::array<amqp_table_entry_t, 4> entries{header("txinbox-reason", "conflict"), header("text", "value"),
                                            header("txinbox-other", "kept"), header("BCC", "elsewhere")};
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_HEADERS_FLAG;
  properties.headers = {.num_entries = 4, .entries = entries.data()};
  const Incoming incoming = received(properties);
  DeadLetter letter{.incoming = &incoming, .reason = "parked"};
  letter.consumer = "svc";
  letter.failures = 3;
  const rabbitmq::DeadLetterProperties with(letter, "orders", 131'072);
  CHECK(names_of(with.properties.headers) == Names{{"text", "value"},
                                                   {"txinbox-other", "kept"},
                                                   {"txinbox-bcc", "elsewhere"},
                                                   {"txinbox-reason", "parked"},
                                                   {"txinbox-error-class", ""},
                                                   {"txinbox-consumer", "svc"},
                                                   {"txinbox-key", ""},
                                                   {"txinbox-origin", std::string(incoming.id)},
                                                   {"txinbox-source", "orders"},
                                                   {"txinbox-failures", "3"}});
}

TEST_CASE("RabbitMQ: a dead letter is persistent, does not expire, and names no other user") {
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_EXPIRATION_FLAG | AMQP_BASIC_USER_ID_FLAG | AMQP_BASIC_TYPE_FLAG;
  properties.expiration = amqp_cstring_bytes("1000");
  properties.user_id = amqp_cstring_bytes("somebody");
  properties.type = amqp_cstring_bytes("order");
  const Incoming incoming = received(properties);
  const rabbitmq::DeadLetterProperties with({.incoming = &incoming, .reason = "parked"}, "orders", 131'072);
  CHECK((with.properties._flags & (AMQP_BASIC_EXPIRATION_FLAG | AMQP_BASIC_USER_ID_FLAG)) == 0);
  CHECK((with.properties._flags & AMQP_BASIC_TYPE_FLAG) != 0);
  CHECK((with.properties._flags & AMQP_BASIC_DELIVERY_MODE_FLAG) != 0);
  CHECK(with.properties.delivery_mode == 2);
}

TEST_CASE("RabbitMQ: a dead letter that is published again is the message as it was sent") {
  std::array<amqp_table_entry_t, 6> entries{
      header("text", "value"),         header("txinbox-reason", "parked"), header("txinbox-source", "orders"),
      header("txinbox-redrives", "1"), header("CC", "elsewhere"),          header("txinbox-other", "kept")};
  amqp_basic_properties_t properties{};
  properties._flags =
      AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_MESSAGE_ID_FLAG | AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_USER_ID_FLAG;
  properties.headers = {.num_entries = 6, .entries = entries.data()};
  properties.message_id = amqp_cstring_bytes("m1");
  properties.content_type = amqp_cstring_bytes("text/plain");
  properties.user_id = amqp_cstring_bytes("somebody");
  const Incoming incoming = received(properties);
  const Republication again{
      .incoming = &incoming, .destination = "orders", .headers = {{dead_letter_header::redrives, "2"}}};
  const rabbitmq::OutgoingProperties outgoing(again);
  const amqp_basic_properties_t& sent = outgoing.get();
  CHECK(names_of(sent.headers) ==
        Names{{"text", "value"}, {"txinbox-cc", "elsewhere"}, {"txinbox-other", "kept"}, {"txinbox-redrives", "2"}});
  CHECK(std::string(static_cast<const char*>(sent.message_id.bytes), sent.message_id.len) == "m1");
  CHECK(std::string(static_cast<const char*>(sent.content_type.bytes), sent.content_type.len) == "text/plain");
  CHECK((sent._flags & AMQP_BASIC_USER_ID_FLAG) == 0);
  CHECK(sent.delivery_mode == 2);
  CHECK(outgoing.fit(131'072));
  CHECK_FALSE(outgoing.fit(60));
}

}  // namespace
}  // namespace txinbox::test
