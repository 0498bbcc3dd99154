#include "message_reader.hpp"

#include <cstring>

#include "connection.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rabbitmq {

void MessageReader::begin(const amqp_basic_deliver_t& delivery) {
  if (next_ != Next::delivery) throw Lost{.why = "the broker began a message in the middle of another one"};
  delivery_ = delivery;
  next_ = Next::header;
}

bool MessageReader::add(const amqp_frame_t& frame) {
  if (frame.frame_type == AMQP_FRAME_HEADER && next_ == Next::header) {
    add_header(frame);
  } else if (frame.frame_type == AMQP_FRAME_BODY && next_ == Next::body) {
    const amqp_bytes_t& part = frame.payload.body_fragment;
    if (part.len > message_.body.len - filled_) throw Lost{.why = "the broker sent more than the message has"};
    if (part.len > 0) std::memcpy(static_cast<char*>(message_.body.bytes) + filled_, part.bytes, part.len);
    filled_ += part.len;
  } else {
    throw Lost{.why = "the broker sent a part of a message that it did not announce"};
  }
  return filled_ == message_.body.len;
}

/// Copies the properties: rabbitmq-c releases the frame's memory soon.
void MessageReader::add_header(const amqp_frame_t& frame) {
  constexpr std::size_t page_size = 4096;
  const auto& header = frame.payload.properties;
  init_amqp_pool(&message_.pool, page_size);
  message_.body = amqp_empty_bytes;
  has_message_ = true;
  amqp_bytes_t copy{};
  amqp_pool_alloc_bytes(&message_.pool, header.raw.len, &copy);
  if (copy.bytes == nullptr) throw Lost{.why = "no memory for the properties of a message"};
  std::memcpy(copy.bytes, header.raw.bytes, header.raw.len);
  void* decoded = nullptr;
  require(amqp_decode_properties(header.class_id, &message_.pool, copy, &decoded), "reading the properties");
  message_.properties = *static_cast<amqp_basic_properties_t*>(decoded);
  if (header.body_size > 0) {
    message_.body = amqp_bytes_malloc(header.body_size);
    if (message_.body.bytes == nullptr) {
      message_.body = amqp_empty_bytes;
      throw Lost{.why = "no memory for the body of a message"};
    }
  }
  next_ = Next::body;
}

amqp_message_t MessageReader::take() noexcept {
  const amqp_message_t message = message_;
  has_message_ = false;
  reset();
  return message;
}

void MessageReader::reset() noexcept {
  if (has_message_) amqp_destroy_message(&message_);
  has_message_ = false;
  message_ = {};
  filled_ = 0;
  next_ = Next::delivery;
}

}  // namespace rabbitmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
