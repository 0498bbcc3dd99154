#include "outgoing_properties.hpp"

#include <array>
#include <cstdint>
#include <string_view>

#include "connection.hpp"
#include "copied_headers.hpp"
#include "rabbitmq_delivery.hpp"
#include "shared/reserved_headers.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rabbitmq {
namespace {

constexpr std::size_t longest_short_text = 255;
const std::string key_header = "key";

/// The header and the properties that the publisher writes. Some receivers list properties and headers together.
constexpr std::array<std::string_view, 3> own_headers{"key", "message-id", "type"};

}  // namespace

OutgoingProperties::OutgoingProperties(const OutgoingMessage& message) {
  if (!message.key.empty()) add(key_header, message.key);
  for (const auto& [name, value] : message.headers) {
    add(names_.emplace_back(component::published_name(message, name, own_headers)), value);
  }
  properties_.delivery_mode = persistent;
  properties_.message_id = bytes_of(message.id);
  properties_._flags = AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_MESSAGE_ID_FLAG;
  if (!message.type.empty()) {
    properties_.type = bytes_of(message.type);
    properties_._flags |= AMQP_BASIC_TYPE_FLAG;
  }
  if (!entries_.empty()) {
    properties_.headers = {.num_entries = static_cast<int>(entries_.size()), .entries = entries_.data()};
    properties_._flags |= AMQP_BASIC_HEADERS_FLAG;
  }
  are_valid_ = are_valid_ && message.id.size() <= longest_short_text && message.type.size() <= longest_short_text &&
               message.topic.size() <= longest_short_text;
  constexpr std::size_t frame_and_lengths = 64;
  size_ += message.id.size() + message.type.size() + frame_and_lengths;
}

OutgoingProperties::OutgoingProperties(const Republication& message)
    : properties_(received_of(*message.incoming).message.properties) {
  for (const amqp_table_entry_t& entry : entries_of(properties_)) {
    if (!is_replaced_by_redrive(view_of(entry.key))) entries_.push_back(entry);
  }
  rename_routing_headers(entries_);
  for (const auto& [name, value] : message.headers) add(names_.emplace_back(name), value);
  properties_.headers = {.num_entries = static_cast<int>(entries_.size()), .entries = entries_.data()};
  properties_.delivery_mode = persistent;
  properties_._flags |= AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG;
  // The broker refuses a message whose user-id is another user. A dead letter has no expiration.
  properties_._flags &= ~static_cast<amqp_flags_t>(AMQP_BASIC_USER_ID_FLAG);
  are_valid_ = are_valid_ && message.destination.size() <= longest_short_text;
  size_ = 0;
}

bool OutgoingProperties::fit(std::size_t frame_max) const {
  return are_valid_ && (size_ == 0 ? fits_into_frame(properties_, frame_max) : size_ <= frame_max);
}

void OutgoingProperties::add(const std::string& name, const std::string& value) {
  amqp_table_entry_t entry{};
  entry.key = bytes_of(name);
  entry.value.kind = AMQP_FIELD_KIND_UTF8;
  entry.value.value.bytes = bytes_of(value);
  entries_.push_back(entry);
  constexpr std::size_t lengths_and_kind = 6;
  size_ += name.size() + value.size() + lengths_and_kind;
  are_valid_ = are_valid_ && name.size() <= longest_short_text;
}

}  // namespace rabbitmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
