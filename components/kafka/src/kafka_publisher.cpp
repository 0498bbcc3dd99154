#include <txinbox/kafka.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <txinbox/error.hpp>

#include "confirmed_producer.hpp"
#include "kafka_error.hpp"
#include "shared/reserved_headers.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace kafka {
namespace {

KafkaOptions consumer_options(const KafkaPublisherOptions& options) {
  KafkaOptions same{.brokers = options.brokers, .group = "-", .topics = {"-"}, .properties = options.properties};
  same.dead_letter_timeout = options.timeout;
  return same;
}

constexpr std::array<std::string_view, 2> own_headers{"id", "type"};

Headers headers_of(const OutgoingMessage& message) {
  Headers headers(rd_kafka_headers_new(message.headers.size() + 2));
  add_header(headers, "id", message.id);
  if (!message.type.empty()) add_header(headers, "type", message.type);
  for (const auto& [name, value] : message.headers) {
    add_header(headers, component::published_name(message, name, own_headers), value);
  }
  return headers;
}

bool is_away(rd_kafka_resp_err_t code) {
  switch (code) {
    case RD_KAFKA_RESP_ERR__MSG_TIMED_OUT:
    case RD_KAFKA_RESP_ERR__TIMED_OUT:
    case RD_KAFKA_RESP_ERR__TRANSPORT:
    case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
    case RD_KAFKA_RESP_ERR__QUEUE_FULL:
      return true;
    default:
      return false;
  }
}

PublishResult result_of(rd_kafka_resp_err_t code) {
  if (is_too_large(code)) return {PublishStatus::rejected, describe(code)};
  switch (code) {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
      return {};
    case RD_KAFKA_RESP_ERR_INVALID_RECORD:
    case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
      return {PublishStatus::rejected, describe(code)};
    default:
      return {PublishStatus::failed, describe(code)};
  }
}

OutgoingRecord record_for(const OutgoingMessage& message) {
  OutgoingRecord record{.topic = message.topic, .key = {}, .body = message.payload, .headers = headers_of(message)};
  if (!message.key.empty()) record.key = message.key;
  return record;
}

OutgoingRecord record_for(const Republication& message) {
  const Incoming& incoming = *message.incoming;
  Headers headers(rd_kafka_headers_new(incoming.headers.size() + message.headers.size()));
  for (const IncomingHeader& header : incoming.headers) {
    if (!is_replaced_by_redrive(header.name)) add_header(headers, header.name, header.value);
  }
  for (const auto& [name, value] : message.headers) add_header(headers, name, value);
  OutgoingRecord record{.topic = message.destination, .key = incoming.key, .body = {}, .headers = std::move(headers)};
  if (incoming.has_body) record.body = incoming.body;
  return record;
}

template <class Message>
std::vector<PublishResult> publish(ConfirmedProducer& producer, std::span<const Message> messages) {
  std::vector<OutgoingRecord> records;
  records.reserve(messages.size());
  for (const Message& message : messages) records.push_back(record_for(message));
  const auto codes = producer.publish(records, producer.latest());
  // A partition can have no leader although a broker answers. Then only the messages of this partition fail.
  const bool has_gone = std::ranges::any_of(codes, is_away) && !producer.reaches_broker();
  const auto is_unanswered = [&](rd_kafka_resp_err_t code) {
    return (has_gone && is_away(code)) || producer.cause_of(code) != code;
  };
  if (!codes.empty() && std::ranges::all_of(codes, is_unanswered)) {
    if constexpr (std::is_same_v<Message, Republication>) {
      throw_if_refused(producer.cause_of(codes.front()), "publishing dead letters again");
    }
    throw std::runtime_error("Kafka: the broker confirms no message: " + describe(producer.cause_of(codes.front())));
  }
  std::vector<PublishResult> results;
  results.reserve(codes.size());
  for (const auto code : codes) {
    results.push_back(is_unanswered(code) ? PublishResult{.status = PublishStatus::postponed} : result_of(code));
  }
  return results;
}

}  // namespace
}  // namespace kafka

Publisher kafka_publisher(const KafkaPublisherOptions& options) {
  const KafkaOptions same = kafka::consumer_options(options);
  kafka::check(same);
  const auto producer = std::make_shared<kafka::ConfirmedProducer>(same);
  return [producer](std::span<const OutgoingMessage> messages) { return kafka::publish(*producer, messages); };
}

Republisher kafka_republisher(const KafkaPublisherOptions& options) {
  const KafkaOptions same = kafka::consumer_options(options);
  kafka::check(same);
  const auto producer = std::make_shared<kafka::ConfirmedProducer>(same, kafka::MissingTopic::is_refused);
  return [producer](std::span<const Republication> messages) { return kafka::publish(*producer, messages); };
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
