#pragma once

/// @file
/// Publishes to Kafka: a publisher for an `OutboxRelay`.

#include <chrono>
#include <map>
#include <string>
#include <string_view>

#include <txinbox/outbox_relay.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

/// Which brokers a Kafka publisher publishes to, and how.
struct KafkaPublisherOptions {
  /// The brokers to connect to first: "host:9092,other:9092".
  std::string brokers;

  /// How long it waits for the broker's confirmation. It should be less than half of `RelayOptions::lease`.
  std::chrono::milliseconds timeout{10'000};

  /// Other properties of librdkafka, as `KafkaOptions::properties`.
  std::map<std::string, std::string> properties = {};
};

/// Reads the options from a URL, as the command does: `kafka://HOST:PORT,HOST:PORT`. Its parameters are properties of
/// librdkafka. A password is not a parameter: the property `sasl.password` is taken from the environment variable
/// TXINBOX_KAFKA_PASSWORD if it is set.
///
/// @errors `Error` invalid_argument for what is missing or not valid, and for a password in the URL. The text does not
///         hold the URL.
KafkaPublisherOptions kafka_publisher_options_from_url(std::string_view url);

/// A publisher for an `OutboxRelay`, on librdkafka. The producer is idempotent and waits for all replicas. It connects
/// at the first message.
///
/// - A message goes to the topic `OutgoingMessage::topic`, which must exist. Its key is the record key; a message with
///   an empty key has none. So messages of one key are in one partition, in their order.
/// - The headers are `id` (the message id), `type` if there is one, and `OutgoingMessage::headers`. A header
///   `id` or `type` of the message gets `header:` before its name.
/// - A message that is too large for the broker, or not valid there, is rejected. If a topic does not exist, or a right
///   is missing, its messages fail.
/// - A message that is not confirmed in time fails if a broker answers another request. If none does, the message is
///   postponed; if no message of the call was answered, the call throws std::runtime_error.
///
/// Give each relay a publisher of its own. Copies of a publisher share one producer.
///
/// @errors   `Error` invalid_argument for the options. The text never holds a value of a property.
/// @blocking it does not wait for the broker. A call of the publisher waits at most `timeout` and two seconds.
/// @threads  one relay.
Publisher kafka_publisher(const KafkaPublisherOptions& options);

TXINBOX_NAMESPACE_END
}  // namespace txinbox
