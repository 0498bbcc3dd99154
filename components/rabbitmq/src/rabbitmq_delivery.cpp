#include "rabbitmq_delivery.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "connection.hpp"
#include "copied_headers.hpp"
#include "field_text.hpp"
#include "shared/dead_letter_headers.hpp"
#include "shared/reserved_headers.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rabbitmq {
namespace {

constexpr std::size_t longest_id = 255;
constexpr std::string_view delivery_count = "x-delivery-count";

/// A property of AMQP that a delivery lists as a header.
struct ListedProperty {
  amqp_flags_t flag;
  std::string_view name;
  amqp_bytes_t amqp_basic_properties_t::*value;
};
constexpr std::string_view message_id = "message-id";
constexpr std::array<ListedProperty, 6> listed_properties{{
    {AMQP_BASIC_MESSAGE_ID_FLAG, message_id, &amqp_basic_properties_t::message_id},
    {AMQP_BASIC_TYPE_FLAG, "type", &amqp_basic_properties_t::type},
    {AMQP_BASIC_CORRELATION_ID_FLAG, "correlation-id", &amqp_basic_properties_t::correlation_id},
    {AMQP_BASIC_APP_ID_FLAG, "app-id", &amqp_basic_properties_t::app_id},
    {AMQP_BASIC_CONTENT_TYPE_FLAG, "content-type", &amqp_basic_properties_t::content_type},
    {AMQP_BASIC_CONTENT_ENCODING_FLAG, "content-encoding", &amqp_basic_properties_t::content_encoding},
}};

/// Whether this name belongs to a property of the message. The name of the message id always does: another id in a
/// header would make two messages one.
bool is_of_broker(const amqp_basic_properties_t& properties, std::string_view name) {
  return name == message_id || std::ranges::any_of(listed_properties, [&](const ListedProperty& each) {
           return each.name == name && (properties._flags & each.flag) != 0;
         });
}

void add_headers(Received& received) {
  const amqp_basic_properties_t& properties = received.message.properties;
  for (const ListedProperty& each : listed_properties) {
    if ((properties._flags & each.flag) == 0) continue;
    received.headers.push_back({.name = each.name, .value = view_of(properties.*each.value)});
  }
  for (const amqp_table_entry_t& entry : entries_of(properties)) {
    std::string_view name = view_of(entry.key);
    if (is_of_broker(properties, name)) name = received.texts.emplace_back(component::renamed_header(name));
    std::string_view value;
    if (entry.value.kind == AMQP_FIELD_KIND_UTF8 || entry.value.kind == AMQP_FIELD_KIND_BYTES) {
      value = view_of(entry.value.value.bytes);
    } else {
      value = received.texts.emplace_back(text_of(entry.value));
    }
    received.headers.push_back({.name = name, .value = value});
  }
}

/// A quorum queue counts the earlier deliveries in a header. In a classic queue, this header is the producer's.
int deliveries_of(const amqp_basic_deliver_t& delivery, const amqp_basic_properties_t& properties) {
  if (delivery.redelivered == 0) return 1;
  for (const amqp_table_entry_t& entry : entries_of(properties)) {
    if (view_of(entry.key) != delivery_count) continue;
    if (const auto count = number_of(entry.value)) {
      return static_cast<int>(std::clamp<std::int64_t>(*count, 1, std::numeric_limits<int>::max() - 1)) + 1;
    }
  }
  return 2;  // a classic queue reports only that the message was delivered before
}

}  // namespace

std::span<const amqp_table_entry_t> entries_of(const amqp_basic_properties_t& properties) {
  if ((properties._flags & AMQP_BASIC_HEADERS_FLAG) == 0) return {};
  return {properties.headers.entries, static_cast<std::size_t>(properties.headers.num_entries)};
}

Incoming incoming_of(const amqp_basic_deliver_t& delivery, const amqp_message_t& message, const std::string& queue,
                     std::uint64_t epoch) {
  auto received = std::make_shared<Received>(message);
  const amqp_basic_properties_t& properties = received->message.properties;
  add_headers(*received);
  received->epoch = epoch;
  received->id = (properties._flags & AMQP_BASIC_MESSAGE_ID_FLAG) != 0
                     ? std::string(view_of(properties.message_id))
                     : queue + "@" + std::to_string(delivery.delivery_tag);
  if (received->id.size() > longest_id) received->id.resize(longest_id);
  Incoming incoming{.body = view_of(received->message.body),
                    .id = received->id,
                    .headers = received->headers,
                    .deliveries = deliveries_of(delivery, properties),
                    .ticket = delivery.delivery_tag};
  if ((properties._flags & AMQP_BASIC_TIMESTAMP_FLAG) != 0) {
    incoming.sent = std::chrono::system_clock::time_point(std::chrono::seconds(properties.timestamp));
  }
  incoming.owner = std::move(received);
  return incoming;
}

DeadLetterProperties::DeadLetterProperties(const DeadLetter& letter, std::string_view queue, std::size_t frame_max)
    : properties(received_of(*letter.incoming).message.properties) {
  const auto ours = component::dead_letter_headers(letter, queue);
  for (const amqp_table_entry_t& entry : entries_of(properties)) {
    if (!dead_letter_header::is_about_failure(view_of(entry.key))) entries_.push_back(entry);
  }
  rename_routing_headers(entries_);
  const auto copied = static_cast<std::ptrdiff_t>(entries_.size());
  const auto add = [&](std::string_view name, std::string_view value) {
    amqp_table_entry_t entry{};
    entry.key = bytes_of(name);
    entry.value.kind = AMQP_FIELD_KIND_UTF8;
    entry.value.value.bytes = bytes_of(texts_.emplace_back(value));
    entries_.push_back(entry);
  };
  for (const auto& [name, value] : ours) add(name, value);
  const auto set_headers = [&] {
    properties.headers = {.num_entries = static_cast<int>(entries_.size()), .entries = entries_.data()};
  };
  set_headers();
  properties.delivery_mode = persistent;
  properties._flags |= AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG;
  // A dead letter must not expire. The broker refuses a message whose user-id is another user.
  properties._flags &= ~static_cast<amqp_flags_t>(AMQP_BASIC_EXPIRATION_FLAG | AMQP_BASIC_USER_ID_FLAG);
  if (!fits_into_frame(properties, frame_max)) {
    entries_.erase(entries_.begin(), entries_.begin() + copied);
    add(dead_letter_header::dropped_headers, std::to_string(copied));
    set_headers();
  }
}

}  // namespace rabbitmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
