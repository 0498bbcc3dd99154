// Handles the events of the client: errors, lost and new connections, and partitions that are assigned and revoked.

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <txinbox/error.hpp>

#include "kafka_error.hpp"
#include "kafka_source.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace kafka {

using namespace std::chrono_literals;

void KafkaSource::consumer_error(const rd_kafka_message_t& message) {
  const rd_kafka_resp_err_t code = message.err;
  if (message.rkt != nullptr && message.partition >= 0) {  // such a message waits, but cannot be read
    partitions_.at(partitions_.lane_of(rd_kafka_topic_name(message.rkt), message.partition)).is_at_end = false;
  }
  switch (code) {
    case RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED:
      report(SourceEventType::warning,
             "no poll for longer than max.poll.interval.ms: the broker gives the partitions to other consumers");
      return;
    case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
      throw Error(ErrorCode::broker_refused,
                  "Kafka: consuming " + name_ +
                      ": the broker no longer has the group's offset, and auto.offset.reset is error; set the "
                      "offset of the group, or another auto.offset.reset");
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
      // The topic existed at the start. The client gives its partitions back.
      has_missed_topic_ = true;
      if (message.rkt != nullptr) missing_topics_.insert(rd_kafka_topic_name(message.rkt));
      report(SourceEventType::warning, "the broker does not know a topic: " + describe(code) +
                                           "; when it is there again, it is consumed from its start");
      return;
    case RD_KAFKA_RESP_ERR__TRANSPORT:
    case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
    case RD_KAFKA_RESP_ERR__RESOLVE:
    case RD_KAFKA_RESP_ERR__TIMED_OUT:
      client_error(code);
      return;
    default:
      throw_if_refused(code, "consuming " + name_);
      report(SourceEventType::warning, describe(code));
  }
}

void KafkaSource::begin_again(std::uint64_t lane, std::int64_t offset) {
  const std::string name = Partitions::name_of(partitions_.at(lane));
  has_missed_topic_ = true;
  forget_messages(lane);
  partitions_.begin_again(client_.get(), lane, offset);
  report(SourceEventType::warning, "the log of " + name +
                                       " has begun again: the topic was created again, or messages were lost at the "
                                       "broker; it is consumed from its start");
  report(SourceEventType::lanes_revoked, "the old log of " + name);
  report(SourceEventType::lanes_assigned, "the new log of " + name);
}

void KafkaSource::contact() {
  if (is_connected_) return;
  is_connected_ = true;
  if (std::exchange(was_connected_, true)) ++reconnects_;
  report(SourceEventType::connected, "connected to " + options_.brokers);
}

/// Checks whether a broker answers again. A message would also show this, but there may be no messages.
void KafkaSource::check_broker() {
  if (is_connected_ || Clock::now() - last_check_ < 1s) return;
  last_check_ = Clock::now();
  const rd_kafka_metadata_t* metadata = nullptr;
  if (rd_kafka_metadata(client_.get(), 0, nullptr, &metadata, 200) != RD_KAFKA_RESP_ERR_NO_ERROR) return;
  rd_kafka_metadata_destroy(metadata);
  contact();
}

void KafkaSource::on_error(rd_kafka_t*, int code, const char*, void* self) {
  static_cast<KafkaSource*>(self)->client_error(static_cast<rd_kafka_resp_err_t>(code));
}

void KafkaSource::client_error(rd_kafka_resp_err_t code) {
  const bool is_refusal = code == RD_KAFKA_RESP_ERR__AUTHENTICATION || code == RD_KAFKA_RESP_ERR__SSL;
  if (is_refusal && !was_connected_) {
    refused_ = code;
  } else if (is_refusal) {
    report(SourceEventType::warning, "a broker refuses the connection: " + describe(code));
  } else if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN && is_connected_) {
    is_connected_ = false;
    report(SourceEventType::disconnected, "no broker can be reached; the client connects again by itself");
  }
}

void KafkaSource::on_rebalance(rd_kafka_t*, rd_kafka_resp_err_t code, rd_kafka_topic_partition_list_t* list,
                               void* self) {
  static_cast<KafkaSource*>(self)->rebalance(code, *list);
}

/// A topic that was not there may be another topic of the same name. So its partitions are consumed from the start. The
/// group's offset must not be used: a consumer may have committed the position in the old topic after the broker
/// deleted the group's offsets. Returns the offsets that replace the group's. If the log begins later,
/// auto.offset.reset applies.
PartitionList KafkaSource::begin_new_topics(rd_kafka_topic_partition_list_t& list) {
  PartitionList starts(rd_kafka_topic_partition_list_new(0));
  for (auto& each : std::span(list.elems, static_cast<std::size_t>(list.cnt))) {
    if (!missing_topics_.contains(each.topic)) continue;
    each.offset = RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_topic_partition_list_add(starts.get(), each.topic, each.partition)->offset = 0;
  }
  for (const auto& each : std::span(starts->elems, static_cast<std::size_t>(starts->cnt)))
    missing_topics_.erase(each.topic);
  return starts;
}

/// It must not wait, because the other members of the group wait until it is done.
void KafkaSource::rebalance(rd_kafka_resp_err_t code, rd_kafka_topic_partition_list_t& list) {
  const char* protocol = rd_kafka_rebalance_protocol(client_.get());
  const bool is_cooperative = protocol != nullptr && std::string_view(protocol) == "COOPERATIVE";
  rd_kafka_error_t* error = nullptr;
  if (code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
    contact();
    was_assigned_ = true;
    is_assigned_ = true;
    partitions_.assigned(list);
    const PartitionList starts = begin_new_topics(list);
    if (is_cooperative) {
      error = rd_kafka_incremental_assign(client_.get(), &list);
    } else {
      rd_kafka_assign(client_.get(), &list);
    }
    if (starts->cnt > 0) rd_kafka_commit(client_.get(), starts.get(), 1);
    if (list.cnt > 0) report(SourceEventType::lanes_assigned, "assigned: " + partitions_.names_of(list));
  } else {
    is_assigned_ = false;
    report(SourceEventType::lanes_leaving, "about to be revoked: " + partitions_.names_of(list));
    partitions_.revoked(client_.get(), list);
    if (is_cooperative) {
      error = rd_kafka_incremental_unassign(client_.get(), &list);
    } else {
      rd_kafka_assign(client_.get(), nullptr);
    }
    if (list.cnt > 0) report(SourceEventType::lanes_revoked, "revoked: " + partitions_.names_of(list));
  }
  if (error != nullptr) {
    report(SourceEventType::warning, "a rebalance failed: " + describe(rd_kafka_error_code(error)));
    rd_kafka_error_destroy(error);
  }
}

/// Replaces the client after a fatal error, because such a client does no more work.
void KafkaSource::reopen_after_fatal_error() {
  const auto code = rd_kafka_fatal_error(client_.get(), nullptr, 0);
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return;
  throw_if_refused(code, "consuming " + name_);
  is_connected_ = false;
  kept_.clear();
  const PartitionList all(rd_kafka_topic_partition_list_new(0));
  for (const auto& partition : partitions_.all()) {
    if (!partition.is_assigned) continue;
    rd_kafka_topic_partition_list_add(all.get(), partition.topic.c_str(), partition.number);
  }
  partitions_.revoked(client_.get(), *all);
  forget_client();
  is_subscribed_ = false;
  open_client();
  report(SourceEventType::disconnected,
         "the client had a fatal error: " + describe(code) + "; the source opens a new client");
}

}  // namespace kafka
TXINBOX_NAMESPACE_END
}  // namespace txinbox
