#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <amqp.h>
#include <amqp_framing.h>
#include <txinbox/source.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rabbitmq {

/// A delivery and its bytes. It owns the message of rabbitmq-c.
struct Received {
  explicit Received(const amqp_message_t& from) : message(from) {}
  ~Received() { amqp_destroy_message(&message); }
  Received(const Received&) = delete;
  Received& operator=(const Received&) = delete;

  amqp_message_t message;
  std::string id = {};
  std::deque<std::string> texts = {};  ///< The texts of header values of other types.
  std::vector<IncomingHeader> headers = {};
  std::uint64_t epoch = 0;  ///< The number of the connection that has received it.
};

/// The headers. Empty if there are none.
std::span<const amqp_table_entry_t> entries_of(const amqp_basic_properties_t& properties);

/// Makes a delivery. Its ticket is the broker's delivery tag.
Incoming incoming_of(const amqp_basic_deliver_t& delivery, const amqp_message_t& message, const std::string& queue,
                     std::uint64_t epoch);

inline const Received& received_of(const Incoming& incoming) {
  return *static_cast<const Received*>(incoming.owner.get());
}

/// The properties of a dead letter, and the memory of its headers. They fit into a frame of this size: if the headers
/// of the message do not fit, the letter has none of them, but the header `txinbox-dropped-headers` with their number.
struct DeadLetterProperties {
  /// `queue` is the queue that the message came from.
  DeadLetterProperties(const DeadLetter& letter, std::string_view queue, std::size_t frame_max);
  DeadLetterProperties(const DeadLetterProperties&) = delete;
  DeadLetterProperties& operator=(const DeadLetterProperties&) = delete;

  amqp_basic_properties_t properties;

 private:
  std::deque<std::string> texts_;
  std::vector<amqp_table_entry_t> entries_;
};

}  // namespace rabbitmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
