#pragma once

#include <memory>
#include <optional>
#include <string>

#include <librdkafka/rdkafka.h>

namespace txinbox::bench {

/// If the topic is empty, publishes `count` messages of 100 bytes with the keys "-00000000", "-00000001" and so on.
void publish(const std::string& brokers, const std::string& topic, int count);

/// A consumer as people write it by hand, with librdkafka's defaults.
///
/// Errors: `std::runtime_error`.
class KafkaClient {
 public:
  class Record {
   public:
    explicit Record(rd_kafka_message_t* message) : message_(message, rd_kafka_message_destroy) {}
    std::string key() const { return {static_cast<const char*>(message_->key), message_->key_len}; }
    const rd_kafka_message_t* get() const { return message_.get(); }

   private:
    std::unique_ptr<rd_kafka_message_t, decltype(&rd_kafka_message_destroy)> message_;
  };

  /// If the group is new, the consumer reads the topic from its beginning.
  KafkaClient(const std::string& brokers, const std::string& group, const std::string& topic);
  ~KafkaClient();
  KafkaClient(const KafkaClient&) = delete;
  KafkaClient& operator=(const KafkaClient&) = delete;

  /// Waits for the next message. None if no message has arrived for ten seconds.
  std::optional<Record> poll();

  void commit(const Record&, bool waits);

 private:
  rd_kafka_t* client_;
};

}  // namespace txinbox::bench
