#pragma once

#include <chrono>
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

/// Destroys a client on a thread of its own, and waits for the end of that for 3 s at most. `KafkaSource::close` must
/// close a consumer first. Otherwise its destruction may wait for the broker.
///
/// In librdkafka 2.0.2, the destruction of a consumer can wait for ever: its main thread then runs in a loop. This was
/// seen after several rebalances in a row. Such a client stays until the process ends.
struct DestroyClient {
  void operator()(rd_kafka_t* client) const noexcept;
};
using Client = std::unique_ptr<rd_kafka_t, DestroyClient>;

/// The same, for at most this time. Returns whether the client is destroyed.
bool destroy_within(std::chrono::milliseconds longest, rd_kafka_t* client) noexcept;

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
