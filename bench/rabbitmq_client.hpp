#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <amqp.h>

namespace txinbox::bench {

/// A producer and a consumer as people write them by hand with rabbitmq-c.
///
/// Errors: `std::runtime_error`.
class RabbitMqClient {
 public:
  class Record {
   public:
    Record() = default;
    ~Record() { amqp_destroy_envelope(&envelope_); }
    Record(const Record&) = delete;
    Record& operator=(const Record&) = delete;
    std::string message_id() const;
    std::uint64_t tag() const { return envelope_.delivery_tag; }

   private:
    friend class RabbitMqClient;
    amqp_envelope_t envelope_{};
  };

  explicit RabbitMqClient(unsigned short port);

  /// Makes a durable queue without messages.
  void create(const std::string& queue);

  /// Publishes persistent messages of 100 bytes until the queue has `count`. `number` is the number of the next
  /// message. Their message ids are "-00000000", "-00000001" and so on.
  void fill(const std::string& queue, int count, int& number);

  /// Begins to consume. `prefetch`: the most messages without an acknowledgement.
  void consume(const std::string& queue, std::uint16_t prefetch);

  /// Waits for the next message. Null if no message has arrived for ten seconds.
  std::unique_ptr<Record> poll();

  /// `multiple`: also acknowledges all earlier messages.
  void acknowledge(const Record& record, bool multiple);

  /// Returns the other messages to the queue.
  void close();

 private:
  struct Destroy {
    void operator()(amqp_connection_state_t connection) const { amqp_destroy_connection(connection); }
  };

  void require_reply(const char* what);
  int count_of(const std::string& queue);

  std::unique_ptr<amqp_connection_state_t_, Destroy> connection_;
};

}  // namespace txinbox::bench
