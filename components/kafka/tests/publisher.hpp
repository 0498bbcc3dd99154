#pragma once

#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <librdkafka/rdkafka.h>

namespace txinbox::test {

/// A producer and an admin client for the tests of Kafka.
class Publisher {
 public:
  struct Header {
    std::string name;
    std::optional<std::string> value;
  };

  struct Record {
    std::optional<std::string> body;
    std::optional<std::string> key = {};
    std::vector<Header> headers = {};
    int partition = RD_KAFKA_PARTITION_UA;
  };

  explicit Publisher(const std::string& brokers) {
    rd_kafka_conf_t* conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", brokers);
    set(conf, "linger.ms", "1");
    set(conf, "acks", "all");
    set(conf, "enable.idempotence", "true");  // otherwise a retry could change the order of the messages
    set(conf, "message.max.bytes", "10000000");
    char text[256];
    producer_.reset(rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof text));
    if (!producer_) throw std::runtime_error(text);
  }

  /// Creates a topic with 4 partitions, as the broker does at the first use of a topic.
  void create(const std::string& topic) {
    rd_kafka_topic_t* handle = rd_kafka_topic_new(producer_.get(), topic.c_str(), nullptr);
    for (int tries = 0; tries < 100; ++tries) {
      const rd_kafka_metadata_t* metadata = nullptr;
      const auto code = rd_kafka_metadata(producer_.get(), 0, handle, &metadata, 10'000);
      const bool is_there = code == RD_KAFKA_RESP_ERR_NO_ERROR && metadata->topic_cnt == 1 &&
                            metadata->topics[0].err == RD_KAFKA_RESP_ERR_NO_ERROR;
      if (metadata != nullptr) rd_kafka_metadata_destroy(metadata);
      if (is_there) {
        rd_kafka_topic_destroy(handle);
        return;
      }
      rd_kafka_poll(producer_.get(), 100);
    }
    throw std::runtime_error("the topic is not made");
  }

  /// Creates a topic with one partition, whose messages have at most `most_bytes` bytes.
  void create(const std::string& topic, int most_bytes) {
    char text[256];
    rd_kafka_NewTopic_t* wanted = rd_kafka_NewTopic_new(topic.c_str(), 1, 1, text, sizeof text);
    rd_kafka_NewTopic_set_config(wanted, "max.message.bytes", std::to_string(most_bytes).c_str());
    rd_kafka_queue_t* queue = rd_kafka_queue_new(producer_.get());
    rd_kafka_CreateTopics(producer_.get(), &wanted, 1, nullptr, queue);
    rd_kafka_event_t* done = rd_kafka_queue_poll(queue, 60'000);
    const bool was_asked = done != nullptr && rd_kafka_event_error(done) == RD_KAFKA_RESP_ERR_NO_ERROR;
    rd_kafka_event_destroy(done);
    rd_kafka_queue_destroy(queue);
    rd_kafka_NewTopic_destroy(wanted);
    if (!was_asked) throw std::runtime_error("the topic is not made");
    create(topic);  // waits until the topic exists
  }

  /// Gives a user a right.
  void allow(const std::string& user, rd_kafka_ResourceType_t type, const std::string& name,
             rd_kafka_AclOperation_t operation) {
    char text[256];
    rd_kafka_AclBinding_t* right =
        rd_kafka_AclBinding_new(type, name.c_str(), RD_KAFKA_RESOURCE_PATTERN_LITERAL, ("User:" + user).c_str(), "*",
                                operation, RD_KAFKA_ACL_PERMISSION_TYPE_ALLOW, text, sizeof text);
    if (right == nullptr) throw std::runtime_error(text);
    rd_kafka_queue_t* queue = rd_kafka_queue_new(producer_.get());
    rd_kafka_CreateAcls(producer_.get(), &right, 1, nullptr, queue);
    rd_kafka_event_t* done = rd_kafka_queue_poll(queue, 60'000);
    const bool was_asked = done != nullptr && rd_kafka_event_error(done) == RD_KAFKA_RESP_ERR_NO_ERROR;
    rd_kafka_event_destroy(done);
    rd_kafka_queue_destroy(queue);
    rd_kafka_AclBinding_destroy(right);
    if (!was_asked) throw std::runtime_error("the right is not given");
  }

  void publish(const std::string& topic, const Record& record) {
    rd_kafka_headers_t* headers = rd_kafka_headers_new(record.headers.size());
    for (const Header& header : record.headers) {
      rd_kafka_header_add(headers, header.name.c_str(), -1, header.value ? header.value->data() : nullptr,
                          header.value ? static_cast<ssize_t>(header.value->size()) : 0);
    }
    rd_kafka_vu_t values[6] = {};
    values[0].vtype = RD_KAFKA_VTYPE_TOPIC;
    values[0].u.cstr = topic.c_str();
    values[1].vtype = RD_KAFKA_VTYPE_PARTITION;
    values[1].u.i32 = record.partition;
    values[2].vtype = RD_KAFKA_VTYPE_MSGFLAGS;
    values[2].u.i = RD_KAFKA_MSG_F_COPY | RD_KAFKA_MSG_F_BLOCK;
    values[3].vtype = RD_KAFKA_VTYPE_VALUE;
    if (record.body) values[3].u.mem = {const_cast<char*>(record.body->data()), record.body->size()};
    values[4].vtype = RD_KAFKA_VTYPE_KEY;
    if (record.key) values[4].u.mem = {const_cast<char*>(record.key->data()), record.key->size()};
    values[5].vtype = RD_KAFKA_VTYPE_HEADERS;
    values[5].u.headers = headers;
    if (rd_kafka_error_t* error = rd_kafka_produceva(producer_.get(), values, 6)) {
      const std::string text = rd_kafka_error_string(error);
      rd_kafka_error_destroy(error);
      throw std::runtime_error(text);
    }
  }

  /// Waits until the broker has all published messages.
  void flush() {
    if (rd_kafka_flush(producer_.get(), 60'000) != RD_KAFKA_RESP_ERR_NO_ERROR) throw std::runtime_error("not flushed");
  }

 private:
  struct Destroy {
    void operator()(rd_kafka_t* client) const { rd_kafka_destroy(client); }
  };

  static void set(rd_kafka_conf_t* conf, const char* name, const std::string& value) {
    char text[256];
    if (rd_kafka_conf_set(conf, name, value.c_str(), text, sizeof text) != RD_KAFKA_CONF_OK) {
      throw std::runtime_error(text);
    }
  }

  std::unique_ptr<rd_kafka_t, Destroy> producer_;
};

}  // namespace txinbox::test
