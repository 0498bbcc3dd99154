#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

#include <signal.h>
#include <sys/types.h>

#include <amqp.h>
#include <amqp_framing.h>
#include <amqp_tcp_socket.h>

#include <txinbox/rabbitmq.hpp>

#include "brokers/broker_under_test.hpp"

namespace txinbox::test {

/// A producer and other functions of the broker for the tests of RabbitMQ.
class RabbitMqBroker : public BrokerUnderTest {
 public:
  RabbitMqBroker() { ::setenv("TXINBOX_RABBITMQ_PASSWORD", "guest", 1); }

  std::string create(const std::string& name) override { return create(name, amqp_empty_table); }

  std::string create(const std::string& name, const amqp_table_t& arguments) {
    connection_.reset();  // the broker may have been killed after the last call
    declare(name, arguments);
    declare(dead_letters_of(name), amqp_empty_table);
    return "amqp://guest@" + broker_address() + "/%2F/" + name;
  }

  std::string create_stream(const std::string& name) {
    amqp_table_entry_t entry{};
    entry.key = amqp_cstring_bytes("x-queue-type");
    entry.value.kind = AMQP_FIELD_KIND_UTF8;
    entry.value.value.bytes = amqp_cstring_bytes("stream");
    return create(name, {.num_entries = 1, .entries = &entry});
  }

  std::string create_quorum(const std::string& name, int delivery_limit) {
    amqp_table_entry_t entries[2];
    entries[0].key = amqp_cstring_bytes("x-queue-type");
    entries[0].value.kind = AMQP_FIELD_KIND_UTF8;
    entries[0].value.value.bytes = amqp_cstring_bytes("quorum");
    entries[1].key = amqp_cstring_bytes("x-delivery-limit");
    entries[1].value.kind = AMQP_FIELD_KIND_I32;
    entries[1].value.value.i32 = delivery_limit;
    return create(name, {.num_entries = 2, .entries = entries});
  }

  void publish(const std::string& name, const std::string& body, const std::string& /*key*/) override {
    publish(name, body, nullptr);
  }

  void publish(const std::string& name, const std::string& body, const amqp_basic_properties_t* properties) {
    amqp_basic_properties_t persistent{};
    if (properties != nullptr) persistent = *properties;
    persistent._flags |= AMQP_BASIC_DELIVERY_MODE_FLAG;
    persistent.delivery_mode = 2;
    check(amqp_basic_publish(connection(), 1, amqp_empty_bytes, amqp_cstring_bytes(name.c_str()), 1, 0, &persistent,
                             {body.size(), const_cast<char*>(body.data())}));
    unconfirmed_.insert(++published_);
  }

  /// Waits for the confirmations: a message that is not confirmed may be lost when the broker is killed.
  void flush() override {
    while (!unconfirmed_.empty()) {
      amqp_frame_t frame{};
      check(amqp_simple_wait_frame(connection(), &frame));
      if (frame.frame_type != AMQP_FRAME_METHOD || frame.payload.method.id != AMQP_BASIC_ACK_METHOD) continue;
      const auto& ack = *static_cast<const amqp_basic_ack_t*>(frame.payload.method.decoded);
      if (ack.multiple != 0) unconfirmed_.erase(unconfirmed_.begin(), unconfirmed_.upper_bound(ack.delivery_tag));
      unconfirmed_.erase(ack.delivery_tag);
      amqp_maybe_release_buffers(connection());
    }
    connection_.reset();  // the test may kill the broker next
  }

  std::string dead_letters_of(const std::string& name) override { return name + ".dead"; }

  std::vector<std::string> redrive_from(const std::string& name) override {
    return {"--from", "amqp://guest@" + broker_address() + "/%2F/" + dead_letters_of(name)};
  }

  void remove(const std::string& name) {
    amqp_queue_delete(connection(), 1, amqp_cstring_bytes(name.c_str()), 0, 0);
    connection_.reset();
  }

  /// The number of messages in a queue that no consumer has.
  unsigned ready(const std::string& name) {
    const auto* queue =
        amqp_queue_declare(connection(), 1, amqp_cstring_bytes(name.c_str()), 1, 0, 0, 0, amqp_empty_table);
    const unsigned count = queue == nullptr ? ~0U : queue->message_count;
    connection_.reset();
    return count;
  }

  /// Takes the messages out of a queue. Returns their ids.
  std::set<std::string> take_ids(const std::string& name) {
    std::set<std::string> ids;
    const auto next = [&] { return amqp_basic_get(connection(), 1, amqp_cstring_bytes(name.c_str()), 1).reply.id; };
    while (next() == AMQP_BASIC_GET_OK_METHOD) {
      amqp_message_t message{};
      if (amqp_read_message(connection(), 1, &message, 0).reply_type != AMQP_RESPONSE_NORMAL) {
        throw std::runtime_error("get from " + name);
      }
      const amqp_bytes_t& id = message.properties.message_id;
      ids.emplace(static_cast<const char*>(id.bytes), id.len);
      amqp_destroy_message(&message);
      amqp_maybe_release_buffers(connection());
    }
    connection_.reset();
    return ids;
  }

  /// Stops the processes of the broker, or continues them. While they are stopped, the connections stay open, and the
  /// broker does not answer.
  static void freeze(bool is_frozen) {
    std::ifstream file(variable("TXINBOX_BROKER_FOLDER") + "/pid");
    pid_t pid = 0;
    if (!(file >> pid) || ::kill(pid, is_frozen ? SIGSTOP : SIGCONT) != 0) throw std::runtime_error("freeze");
    // A thread that runs on another CPU stops a moment after `kill` has returned.
    const auto tasks = std::filesystem::path("/proc") / std::to_string(pid) / "task";
    const auto is_running = [](const std::filesystem::directory_entry& task) {
      std::ifstream stat(task.path() / "stat");
      const std::string text{std::istreambuf_iterator<char>(stat), {}};
      const auto name_end = text.rfind(") ");
      return name_end != std::string::npos && text[name_end + 2] != 'T';
    };
    while (is_frozen && std::ranges::any_of(std::filesystem::directory_iterator(tasks), is_running)) {
      std::this_thread::yield();
    }
  }

  /// Sets to which queues and exchanges the user may write.
  static void allow_writes(const std::string& pattern) {
    control("ctl", "set_permissions -p / guest '.*' '" + pattern + "' '.*'");
  }

  /// Sets how long a message may stay unacknowledged on channels that are opened from now on. The broker checks this at
  /// these intervals.
  static void set_consumer_timeout(std::chrono::milliseconds time, std::chrono::milliseconds interval) {
    control("ctl", "eval 'application:set_env(rabbit, consumer_timeout, " + std::to_string(time.count()) +
                       "), application:set_env(rabbit, channel_tick_interval, " + std::to_string(interval.count()) +
                       ").'");
  }

  /// Sets the largest message that the broker takes on channels that are opened from now on.
  static void set_max_message_size(std::size_t bytes) {
    control("ctl", "eval 'application:set_env(rabbit, max_message_size, " + std::to_string(bytes) + ").'");
  }

  /// Closes the connections of all clients.
  static void close_connections() { control("ctl", "close_all_connections test"); }

  /// Sets the memory limit. If the broker uses more memory, it accepts no messages.
  static void set_memory_limit(const std::string& size) {
    control("ctl", "set_vm_memory_high_watermark absolute " + size);
  }

  /// Declares a queue that only this connection may use. It exists until the connection is closed.
  void declare_exclusive(const std::string& name) {
    amqp_queue_declare(connection(), 1, amqp_cstring_bytes(name.c_str()), 0, 0, 1, 0, amqp_empty_table);
    if (amqp_get_rpc_reply(connection()).reply_type != AMQP_RESPONSE_NORMAL)
      throw std::runtime_error("declare " + name);
  }

  static RabbitMqOptions options(const std::string& name) {
    RabbitMqOptions options = rabbitmq_options_from_url("amqp://guest@" + broker_address() + "/%2F/" + name);
    options.dead_letters = name + ".dead";
    return options;
  }

 private:
  struct Destroy {
    void operator()(amqp_connection_state_t connection) const { amqp_destroy_connection(connection); }
  };

  static void check(int status) {
    if (status != AMQP_STATUS_OK) throw std::runtime_error(amqp_error_string2(status));
  }

  void declare(const std::string& name, const amqp_table_t& arguments) {
    amqp_queue_declare(connection(), 1, amqp_cstring_bytes(name.c_str()), 0, 1, 0, 0, arguments);
    if (amqp_get_rpc_reply(connection()).reply_type != AMQP_RESPONSE_NORMAL)
      throw std::runtime_error("declare " + name);
  }

  amqp_connection_state_t connection() {
    if (connection_) return connection_.get();
    connection_.reset(amqp_new_connection());
    amqp_socket_t* socket = amqp_tcp_socket_new(connection_.get());
    const std::string address = broker_address();
    check(amqp_socket_open(socket, "127.0.0.1", std::stoi(address.substr(address.find(':') + 1))));
    const auto reply = amqp_login(connection_.get(), "/", 0, 131'072, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest");
    if (reply.reply_type != AMQP_RESPONSE_NORMAL) throw std::runtime_error("login");
    amqp_channel_open(connection_.get(), 1);
    amqp_confirm_select(connection_.get(), 1);
    published_ = 0;
    return connection_.get();
  }

  std::unique_ptr<amqp_connection_state_t_, Destroy> connection_;
  std::uint64_t published_ = 0;  // the number of messages published on this connection
  std::set<std::uint64_t> unconfirmed_;
};

}  // namespace txinbox::test
