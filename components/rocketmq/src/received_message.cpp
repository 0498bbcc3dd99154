#include "received_message.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <zlib.h>

#include "shared/reserved_headers.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rocketmq {
namespace {

namespace protocol = apache::rocketmq::v2;

constexpr std::size_t longest_id = 255;

/// The maximum size of a decompressed body. The broker accepts 4 MiB by default. A larger body is an attack, or is
/// corrupt.
constexpr std::size_t longest_body = 64UL * 1024 * 1024;

/// Decompresses a body in the format of gzip or zlib. Older producers use zlib. None if the body is corrupt.
std::optional<std::string> decompressed(const std::string& compressed) {
  constexpr int either_format = 15 + 32;
  z_stream stream{};
  if (inflateInit2(&stream, either_format) != Z_OK) return std::nullopt;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(compressed.data()));  // NOLINT: only read
  stream.avail_in = static_cast<uInt>(compressed.size());
  std::string body;
  std::array<char, 16'384> part{};
  int result = Z_OK;
  while (result == Z_OK && body.size() <= longest_body) {
    stream.next_out = reinterpret_cast<Bytef*>(part.data());
    stream.avail_out = static_cast<uInt>(part.size());
    result = inflate(&stream, Z_NO_FLUSH);
    body.append(part.data(), part.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (result != Z_STREAM_END || body.size() > longest_body) return std::nullopt;
  return body;
}

struct ReceivedMessage {
  explicit ReceivedMessage(protocol::Message the_message) : message(std::move(the_message)) {
    const protocol::SystemProperties& system = message.system_properties();
    if (system.has_tag()) headers.push_back({.name = "tag", .value = system.tag()});
    for (const std::string& key : system.keys()) headers.push_back({.name = "keys", .value = key});
    if (system.has_message_group()) headers.push_back({.name = "message-group", .value = system.message_group()});
    add_user_properties();
    if (system.body_encoding() == protocol::GZIP) {
      body = decompressed(message.body());
    } else {
      body = std::move(*message.mutable_body());
    }
  }

  protocol::Message message;
  std::optional<std::string> body;
  std::vector<IncomingHeader> headers;

 private:
  void add_user_properties() {
    const std::size_t of_broker = headers.size();
    for (const auto& [name, value] : message.user_properties()) {
      // The name of the keys always belongs to the broker: another key in a property would make two messages one.
      const auto own = std::span(headers).first(of_broker);
      const bool is_of_broker = name == "keys" || std::ranges::find(own, name, &IncomingHeader::name) != own.end();
      const std::string& listed = is_of_broker ? renamed_.emplace_back(component::renamed_header(name)) : name;
      headers.push_back({.name = listed, .value = value});
    }
    std::ranges::sort(headers.begin() + static_cast<std::ptrdiff_t>(of_broker), headers.end(), {},
                      &IncomingHeader::name);
  }

  std::deque<std::string> renamed_;
};

}  // namespace

Incoming incoming_of(protocol::Message message, std::uint64_t ticket, bool is_fifo) {
  auto received = std::make_shared<const ReceivedMessage>(std::move(message));
  const protocol::SystemProperties& system = received->message.system_properties();
  Incoming incoming{.has_body = received->body.has_value(),
                    .id = std::string_view(system.message_id()).substr(0, longest_id),
                    .headers = received->headers,
                    .deliveries = system.delivery_attempt(),
                    .ticket = ticket};
  if (received->body) incoming.body = *received->body;
  if (system.keys_size() > 0) incoming.key = system.keys(0);
  if (is_fifo && system.has_message_group()) incoming.lane = std::hash<std::string>{}(system.message_group());
  if (system.has_born_timestamp()) {
    const auto since = std::chrono::seconds(system.born_timestamp().seconds()) +
                       std::chrono::nanoseconds(system.born_timestamp().nanos());
    incoming.sent =
        std::chrono::system_clock::time_point(std::chrono::duration_cast<std::chrono::system_clock::duration>(since));
  }
  incoming.owner = std::move(received);
  return incoming;
}

const protocol::Message& message_of(const Incoming& incoming) {
  return static_cast<const ReceivedMessage*>(incoming.owner.get())->message;
}

}  // namespace rocketmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
