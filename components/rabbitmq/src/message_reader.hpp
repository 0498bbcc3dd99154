#pragma once

#include <cstddef>

#include <amqp.h>
#include <amqp_framing.h>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rabbitmq {

/// Puts a delivery together from its frames, in the order in which they come. It never waits: rabbitmq-c's own
/// `amqp_read_message` waits for the rest of a message, for as long as the broker sends heartbeats.
class MessageReader {
 public:
  MessageReader() = default;
  ~MessageReader() { reset(); }
  MessageReader(const MessageReader&) = delete;
  MessageReader& operator=(const MessageReader&) = delete;

  /// The broker has announced a message.
  void begin(const amqp_basic_deliver_t& delivery);

  /// Adds a header or a part of the body. Returns whether the message is complete.
  ///
  /// Errors: `Lost` if the frame does not belong here.
  bool add(const amqp_frame_t& frame);

  /// The announcement of the message. Only the tag and `redelivered` are still valid.
  const amqp_basic_deliver_t& delivery() const noexcept { return delivery_; }

  /// Gives a complete message away. The caller must destroy it.
  amqp_message_t take() noexcept;

  /// Forgets what has come of a message.
  void reset() noexcept;

 private:
  enum class Next { delivery, header, body };

  void add_header(const amqp_frame_t& frame);

  Next next_ = Next::delivery;
  amqp_basic_deliver_t delivery_{};
  amqp_message_t message_{};
  bool has_message_ = false;
  std::size_t filled_ = 0;  ///< How many bytes of the body have come.
};

}  // namespace rabbitmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
