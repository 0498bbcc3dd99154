#include "queue_length.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rabbitmq {
namespace {

constexpr std::chrono::seconds interval{10};

}  // namespace

void QueueLength::ask(amqp_connection_state_t connection, const std::string& queue) {
  if (Clock::now() < next_) return;
  next_ = Clock::now() + interval;
  if (is_asked_) {
    length_.reset();  // the last question was not answered
    return;
  }
  require_writable(connection);
  if (!is_open_) {
    amqp_channel_open_t open{.out_of_band = amqp_empty_bytes};
    require(amqp_send_method(connection, channel, AMQP_CHANNEL_OPEN_METHOD, &open), "opening a channel");
    is_open_ = true;
  }
  amqp_queue_declare_t declare{};
  declare.queue = bytes_of(queue);
  declare.passive = 1;
  require(amqp_send_method(connection, channel, AMQP_QUEUE_DECLARE_METHOD, &declare),
          "asking for the length of the queue");
  is_asked_ = true;
}

void QueueLength::handle(amqp_connection_state_t connection, const amqp_method_t& method) {
  if (method.id == AMQP_QUEUE_DECLARE_OK_METHOD) {
    length_ = static_cast<const amqp_queue_declare_ok_t*>(method.decoded)->message_count;
    is_asked_ = false;
  } else if (method.id == AMQP_CHANNEL_CLOSE_METHOD) {
    length_.reset();
    is_asked_ = false;
    is_open_ = false;
    accept_close(connection, channel);
  }
}

}  // namespace rabbitmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
