#pragma once

#include <memory>
#include <string>

#include <librdkafka/rdkafka.h>
#include <txinbox/kafka.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace kafka {

// Smart pointers to the objects of librdkafka.

struct DestroyConf {
  void operator()(rd_kafka_conf_t* conf) const noexcept { rd_kafka_conf_destroy(conf); }
};
using Conf = std::unique_ptr<rd_kafka_conf_t, DestroyConf>;

/// `KafkaSource::close` must close a consumer first. Otherwise its destruction may wait for the broker.
struct DestroyClient {
  void operator()(rd_kafka_t* client) const noexcept {
    rd_kafka_destroy_flags(client, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
  }
};
using Client = std::unique_ptr<rd_kafka_t, DestroyClient>;

struct DestroyQueue {
  void operator()(rd_kafka_queue_t* queue) const noexcept { rd_kafka_queue_destroy(queue); }
};
using Queue = std::unique_ptr<rd_kafka_queue_t, DestroyQueue>;

struct DestroyEvent {
  void operator()(rd_kafka_event_t* event) const noexcept { rd_kafka_event_destroy(event); }
};
using Event = std::unique_ptr<rd_kafka_event_t, DestroyEvent>;

struct DestroyPartitions {
  void operator()(rd_kafka_topic_partition_list_t* list) const noexcept { rd_kafka_topic_partition_list_destroy(list); }
};
using PartitionList = std::unique_ptr<rd_kafka_topic_partition_list_t, DestroyPartitions>;

struct DestroyMessage {
  void operator()(rd_kafka_message_t* message) const noexcept { rd_kafka_message_destroy(message); }
};
using MessagePtr = std::unique_ptr<rd_kafka_message_t, DestroyMessage>;

/// Errors: `Error` invalid_argument. The text names the property and does not contain the value.
void set(rd_kafka_conf_t* conf, const std::string& name, const std::string& value);

/// The configuration that consumers and producers share: the brokers, the user's properties, and no log on standard
/// error.
///
/// Errors: as `set`.
Conf make_conf(const KafkaOptions& options);

/// The configuration of a consumer.
Conf make_consumer_conf(const KafkaOptions& options);

/// Checks the options and refuses properties that the source sets itself.
///
/// Errors: `Error` invalid_argument.
void check(const KafkaOptions& options);

/// Errors: `Error` invalid_argument for properties that contradict each other.
Client make_client(rd_kafka_type_t type, Conf conf);

/// Whether librdkafka aborts the process if this consumer is destroyed after it has joined the group and before its
/// first assignment. Versions before 2.3.0 do this with a sticky assignor (librdkafka's issue 4312).
bool aborts_before_assignment(rd_kafka_t* client);

/// Asks the broker whether the topic exists. `topic_code` is the broker's answer. Does not create the topic.
rd_kafka_resp_err_t ask_for_topic(rd_kafka_t* client, const std::string& topic, int milliseconds,
                                  rd_kafka_resp_err_t& topic_code);

}  // namespace kafka
TXINBOX_NAMESPACE_END
}  // namespace txinbox
