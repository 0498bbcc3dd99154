#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include <librdkafka/rdkafka.h>

namespace txinbox::test {

/// Creates and deletes topics on a real broker.
class Admin {
 public:
  explicit Admin(const std::string& brokers) {
    rd_kafka_conf_t* conf = rd_kafka_conf_new();
    char text[256];
    if (rd_kafka_conf_set(conf, "bootstrap.servers", brokers.c_str(), text, sizeof text) != RD_KAFKA_CONF_OK) {
      throw std::runtime_error(text);
    }
    client_.reset(rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof text));
    if (!client_) throw std::runtime_error(text);
    queue_.reset(rd_kafka_queue_new(client_.get()));
  }

  void create(const std::string& topic, int partitions) {
    char text[256];
    rd_kafka_NewTopic_t* wanted = rd_kafka_NewTopic_new(topic.c_str(), partitions, 1, text, sizeof text);
    rd_kafka_CreateTopics(client_.get(), &wanted, 1, nullptr, queue_.get());
    const Event done = answer();
    rd_kafka_NewTopic_destroy(wanted);
    std::size_t count = 0;
    check(rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(done.get()), &count));
  }

  void remove(const std::string& topic) {
    rd_kafka_DeleteTopic_t* unwanted = rd_kafka_DeleteTopic_new(topic.c_str());
    rd_kafka_DeleteTopics(client_.get(), &unwanted, 1, nullptr, queue_.get());
    const Event done = answer();
    rd_kafka_DeleteTopic_destroy(unwanted);
    std::size_t count = 0;
    check(rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(done.get()), &count));
  }

  /// Deletes the messages of a partition that are before this offset.
  void remove_before(const std::string& topic, int partition, std::int64_t offset) {
    rd_kafka_topic_partition_list_t* list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, topic.c_str(), partition)->offset = offset;
    rd_kafka_DeleteRecords_t* unwanted = rd_kafka_DeleteRecords_new(list);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_DeleteRecords(client_.get(), &unwanted, 1, nullptr, queue_.get());
    const Event done = answer();
    rd_kafka_DeleteRecords_destroy(unwanted);
    const auto* offsets = rd_kafka_DeleteRecords_result_offsets(rd_kafka_event_DeleteRecords_result(done.get()));
    if (offsets->elems[0].err != RD_KAFKA_RESP_ERR_NO_ERROR) throw std::runtime_error("the messages are not deleted");
  }

  /// Sets the group's offset.
  void commit(const std::string& group, const std::string& topic, int partition, std::int64_t offset) {
    rd_kafka_topic_partition_list_t* list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, topic.c_str(), partition)->offset = offset;
    rd_kafka_AlterConsumerGroupOffsets_t* wanted = rd_kafka_AlterConsumerGroupOffsets_new(group.c_str(), list);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_AlterConsumerGroupOffsets(client_.get(), &wanted, 1, nullptr, queue_.get());
    const Event done = answer();
    rd_kafka_AlterConsumerGroupOffsets_destroy(wanted);
  }

  /// The offset that the group has committed, or a negative number.
  std::int64_t committed(const std::string& group, const std::string& topic, int partition) {
    rd_kafka_topic_partition_list_t* list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, topic.c_str(), partition);
    rd_kafka_ListConsumerGroupOffsets_t* question = rd_kafka_ListConsumerGroupOffsets_new(group.c_str(), list);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_ListConsumerGroupOffsets(client_.get(), &question, 1, nullptr, queue_.get());
    const Event done = answer();
    rd_kafka_ListConsumerGroupOffsets_destroy(question);
    std::size_t count = 0;
    const auto* groups = rd_kafka_ListConsumerGroupOffsets_result_groups(
        rd_kafka_event_ListConsumerGroupOffsets_result(done.get()), &count);
    if (count != 1) throw std::runtime_error("no answer about the group");
    return rd_kafka_group_result_partitions(groups[0])->elems[0].offset;
  }

 private:
  struct Destroy {
    void operator()(rd_kafka_t* client) const { rd_kafka_destroy(client); }
    void operator()(rd_kafka_queue_t* queue) const { rd_kafka_queue_destroy(queue); }
    void operator()(rd_kafka_event_t* event) const { rd_kafka_event_destroy(event); }
  };
  using Event = std::unique_ptr<rd_kafka_event_t, Destroy>;

  Event answer() {
    Event done(rd_kafka_queue_poll(queue_.get(), 60'000));
    if (!done || rd_kafka_event_error(done.get()) != RD_KAFKA_RESP_ERR_NO_ERROR) {
      throw std::runtime_error("the broker does not answer");
    }
    return done;
  }

  static void check(const rd_kafka_topic_result_t** results) {
    const auto code = rd_kafka_topic_result_error(results[0]);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) throw std::runtime_error(rd_kafka_err2name(code));
  }

  std::unique_ptr<rd_kafka_t, Destroy> client_;
  std::unique_ptr<rd_kafka_queue_t, Destroy> queue_;
};

}  // namespace txinbox::test
