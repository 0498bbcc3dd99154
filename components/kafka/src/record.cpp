#include "record.hpp"

#include <chrono>
#include <cstddef>
#include <string_view>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace kafka {
namespace {

constexpr std::size_t longest_id = 255;

std::string_view bytes(const void* data, std::size_t size) {
  return {static_cast<const char*>(data), data == nullptr ? 0 : size};
}

struct RawHeader {
  std::string_view name;
  std::string_view value;
};

std::vector<RawHeader> headers_of(const rd_kafka_message_t& message) {
  std::vector<RawHeader> found;
  rd_kafka_headers_t* headers = nullptr;
  if (rd_kafka_message_headers(&message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) return found;
  const char* name = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  for (std::size_t i = 0; rd_kafka_header_get_all(headers, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR;
       ++i) {
    found.push_back({.name = name, .value = bytes(value, size)});
  }
  return found;
}

}  // namespace

Incoming incoming_of(const rd_kafka_message_t& message, std::uint64_t lane, std::uint64_t epoch) {
  const std::vector<RawHeader> headers = headers_of(message);
  std::size_t size = message.len + message.key_len;
  for (const RawHeader& header : headers) size += header.name.size() + header.value.size();

  auto record = std::make_shared<Record>();
  record->bytes.reserve(size);  // keeps the views below valid
  const auto copy = [&](std::string_view part) {
    const std::size_t at = record->bytes.size();
    record->bytes += part;
    return std::string_view(record->bytes).substr(at);
  };
  Incoming incoming;
  incoming.body = copy(bytes(message.payload, message.len));
  incoming.has_body = message.payload != nullptr;
  if (message.key != nullptr) incoming.key = copy(bytes(message.key, message.key_len));
  record->headers.reserve(headers.size());
  for (const RawHeader& header : headers) {
    record->headers.push_back({.name = copy(header.name), .value = copy(header.value)});
  }
  record->id = rd_kafka_topic_name(message.rkt);
  record->topic_size = record->id.size();
  record->id += "/" + std::to_string(message.partition) + "@" + std::to_string(message.offset);
  if (record->id.size() > longest_id) record->id.resize(longest_id);
  record->offset = message.offset;
  incoming.id = record->id;
  incoming.headers = record->headers;
  incoming.lane = lane;
  incoming.ticket = epoch;
  rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
  const auto sent = rd_kafka_message_timestamp(&message, &type);
  if (type != RD_KAFKA_TIMESTAMP_NOT_AVAILABLE) {
    incoming.sent = std::chrono::system_clock::time_point(std::chrono::milliseconds(sent));
  }
  incoming.owner = std::move(record);
  return incoming;
}

}  // namespace kafka
TXINBOX_NAMESPACE_END
}  // namespace txinbox
