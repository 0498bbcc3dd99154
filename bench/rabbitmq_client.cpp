#include "rabbitmq_client.hpp"

#include <chrono>
#include <stdexcept>
#include <thread>

#include <amqp_tcp_socket.h>
#include <fmt/format.h>

namespace txinbox::bench {
namespace {

constexpr amqp_channel_t channel = 1;

void require(int status, const char* what) {
  if (status != AMQP_STATUS_OK) throw std::runtime_error(fmt::format("{}: {}", what, amqp_error_string2(status)));
}

void require(const amqp_rpc_reply_t& reply, const char* what) {
  if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION) require(reply.library_error, what);
  if (reply.reply_type != AMQP_RESPONSE_NORMAL) throw std::runtime_error(fmt::format("{}: refused", what));
}

amqp_bytes_t bytes_of(const std::string& text) { return {text.size(), const_cast<char*>(text.data())}; }

}  // namespace

std::string RabbitMqClient::Record::message_id() const {
  const amqp_bytes_t& id = envelope_.message.properties.message_id;
  return {static_cast<const char*>(id.bytes), id.len};
}

RabbitMqClient::RabbitMqClient(unsigned short port) : connection_(amqp_new_connection()) {
  amqp_socket_t* socket = amqp_tcp_socket_new(connection_.get());
  if (socket == nullptr) throw std::bad_alloc();
  require(amqp_socket_open(socket, "127.0.0.1", port), "connecting");
  require(amqp_login(connection_.get(), "/", 0, 131'072, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest"), "login");
  amqp_channel_open(connection_.get(), channel);
  require_reply("opening a channel");
}

void RabbitMqClient::require_reply(const char* what) { require(amqp_get_rpc_reply(connection_.get()), what); }

void RabbitMqClient::create(const std::string& queue) {
  amqp_queue_delete(connection_.get(), channel, bytes_of(queue), 0, 0);
  require_reply("deleting the queue");
  amqp_queue_declare(connection_.get(), channel, bytes_of(queue), 0, 1, 0, 0, amqp_empty_table);
  require_reply("declaring the queue");
}

int RabbitMqClient::count_of(const std::string& queue) {
  const auto* declared = amqp_queue_declare(connection_.get(), channel, bytes_of(queue), 1, 0, 0, 0, amqp_empty_table);
  require_reply("asking for the queue's length");
  return static_cast<int>(declared->message_count);
}

void RabbitMqClient::fill(const std::string& queue, int count, int& number) {
  const std::string body(100, 'x');
  for (int left = count - count_of(queue); left > 0; --left) {
    const std::string id = fmt::format("-{:08}", number++);
    amqp_basic_properties_t properties{};
    properties._flags = AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_MESSAGE_ID_FLAG;
    properties.delivery_mode = 2;
    properties.message_id = bytes_of(id);
    require(amqp_basic_publish(connection_.get(), channel, amqp_empty_bytes, bytes_of(queue), 1, 0, &properties,
                               bytes_of(body)),
            "publishing");
  }
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (count_of(queue) < count) {
    if (std::chrono::steady_clock::now() > give_up) throw std::runtime_error("the queue does not get its messages");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void RabbitMqClient::consume(const std::string& queue, std::uint16_t prefetch) {
  amqp_basic_qos(connection_.get(), channel, 0, prefetch, 0);
  require_reply("setting the prefetch");
  amqp_basic_consume(connection_.get(), channel, bytes_of(queue), amqp_empty_bytes, 0, 0, 0, amqp_empty_table);
  require_reply("consuming");
}

std::unique_ptr<RabbitMqClient::Record> RabbitMqClient::poll() {
  auto record = std::make_unique<Record>();
  amqp_maybe_release_buffers(connection_.get());
  const timeval timeout{.tv_sec = 10, .tv_usec = 0};
  const amqp_rpc_reply_t reply = amqp_consume_message(connection_.get(), &record->envelope_, &timeout, 0);
  if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION && reply.library_error == AMQP_STATUS_TIMEOUT) return nullptr;
  require(reply, "polling");
  return record;
}

void RabbitMqClient::acknowledge(const Record& record, bool multiple) {
  require(amqp_basic_ack(connection_.get(), channel, record.tag(), multiple ? 1 : 0), "acknowledging");
}

void RabbitMqClient::close() { require(amqp_connection_close(connection_.get(), AMQP_REPLY_SUCCESS), "closing"); }

}  // namespace txinbox::bench
