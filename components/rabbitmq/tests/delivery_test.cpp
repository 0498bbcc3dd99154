// What a RabbitMQ source makes of a message's properties and headers, without a broker.

#include <array>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

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

Incoming received(const amqp_basic_properties_t& properties) {
  amqp_message_t message{};
  message.properties = properties;
  message.body = amqp_bytes_malloc(1);
  *static_cast<char*>(message.body.bytes) = 'b';
  init_amqp_pool(&message.pool, 4096);
  return rabbitmq::incoming_of({}, message, "queue", 1);
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

TEST_CASE("RabbitMQ: a second dead letter of a message has the headers of the newest only") {
  std::array<amqp_table_entry_t, 3> entries{header("txinbox-reason", "conflict"), header("text", "value"),
                                            header("txinbox-other", "kept")};
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_HEADERS_FLAG;
  properties.headers = {.num_entries = 3, .entries = entries.data()};
  const Incoming incoming = received(properties);
  DeadLetter letter{.incoming = &incoming, .reason = "parked"};
  letter.consumer = "svc";
  letter.failures = 3;
  const rabbitmq::DeadLetterProperties with(letter);
  CHECK(names_of(with.properties.headers) == Names{{"text", "value"},
                                                   {"txinbox-other", "kept"},
                                                   {"txinbox-reason", "parked"},
                                                   {"txinbox-error-class", ""},
                                                   {"txinbox-consumer", "svc"},
                                                   {"txinbox-key", ""},
                                                   {"txinbox-origin", std::string(incoming.id)},
                                                   {"txinbox-failures", "3"}});
}

}  // namespace
}  // namespace txinbox::test
