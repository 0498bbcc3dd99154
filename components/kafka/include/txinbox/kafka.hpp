#pragma once

/// @file
/// Consumes from Kafka: a source for `run`. Publishes to it: a publisher for an `OutboxRelay`.

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/outbox_relay.hpp>
#include <txinbox/redrive.hpp>
#include <txinbox/source.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

/// Which topics a Kafka source consumes, and how.
struct KafkaOptions {
  /// The brokers to connect to first: "host:9092,other:9092".
  std::string brokers;

  /// The consumer group. Use one group for each consumer name of the inbox.
  std::string group;

  /// The topics. A name that begins with `^` is a regular expression of librdkafka.
  std::vector<std::string> topics;

  /// The topic for dead letters; empty: there is none. It must exist, and must not be one of `topics`. See `DeadLetter`
  /// for what becomes one.
  ///
  /// A dead letter is the message with its key and its headers, and with these headers: `txinbox-reason`,
  /// `txinbox-error-class`, `txinbox-consumer`, `txinbox-key` (the business key), `txinbox-origin`
  /// ("topic/partition@offset"), `txinbox-source` (the topic) and `txinbox-failures`. They replace headers of the
  /// message with these names.
  std::string dead_letters = {};

  /// How long the source waits for the broker's confirmation of a dead letter, at most a day. `run` polls no messages
  /// and sees no stop meanwhile. After it, `run` tries again later.
  std::chrono::milliseconds dead_letter_timeout{3'000};

  /// Properties of librdkafka, for example for TLS and SASL: `security.protocol`, `ssl.ca.location`, `sasl.mechanism`,
  /// `sasl.username`, `sasl.password`. Those that the source sets itself are refused.
  ///
  /// These decide when the broker gives the partitions to other members of the group:
  /// - `session.timeout.ms`, 45 s: after this time without a heartbeat, the broker takes the consumer for dead. Its
  ///   messages wait until then.
  /// - `max.poll.interval.ms`, 5 minutes: how long the broker waits for a poll. `run` polls at least once a second,
  ///   however long a handler takes. So it counts only for a process that hangs.
  /// - `group.instance.id`, none: a name of this member that stays the same after a restart (static membership). A
  ///   restart within `session.timeout.ms` moves no partitions.
  ///
  /// These have other defaults than in librdkafka:
  /// - `auto.offset.reset` is `earliest`. Otherwise a new group would not get the messages that are there.
  /// - `partition.assignment.strategy` is `cooperative-sticky`. Then a consumer that joins or leaves stops only the
  ///   partitions that move.
  /// - `topic.metadata.refresh.interval.ms` is 1 s, or 10 s if a topic is a regular expression. So the source notices
  ///   that a topic was deleted.
  /// - `heartbeat.interval.ms` is a third of `session.timeout.ms`, and at most 3 s.
  /// - `message.max.bytes` of the dead letters is the greatest possible. So only the broker limits their size.
  /// - `ssl.endpoint.identification.algorithm` is `https` with librdkafka 1.9, too: the client checks the host name of
  ///   the broker's certificate.
  std::map<std::string, std::string> properties = {};
};

/// Reads the options from a URL, as the command does: `kafka://HOST:PORT,HOST:PORT/TOPIC,TOPIC?group=NAME`.
///
/// More parameters: `dead_letters`, `debug`, and the properties of librdkafka that have a dot in their names, such as
/// `security.protocol=SASL_SSL&sasl.mechanism=PLAIN&sasl.username=orders`. `message.timeout.ms` sets
/// `dead_letter_timeout`. A password is not a parameter: the property `sasl.password` is taken from the environment
/// variable TXINBOX_KAFKA_PASSWORD if it is set.
///
/// @errors `Error` invalid_argument for what is missing or not valid, and for a password in the URL. The text does not
///         hold the URL.
KafkaOptions kafka_options_from_url(std::string_view url);

/// A source for Kafka, on librdkafka. It connects at the first `poll`.
///
/// - A lane is a partition. `Incoming::key` is the record key, `Incoming::id` is "topic/partition@offset".
/// - An acknowledgement stores the offset in memory. librdkafka commits it every second, when the partition is revoked,
///   and in `close`. After a crash, what was stored meanwhile is delivered again.
/// - A message whose value is null (a tombstone) has no body.
/// - If a topic or the dead-letter topic does not exist, `poll` throws `Error` broker_refused. If the user, the
///   password or the certificate is refused, or a right is missing, it throws `Error` access_refused.
/// - While `run` has no room, the source keeps a few messages that come with its polls: at most 128, or 4 MB and one.
///
/// @errors `Error` invalid_argument for the options. The text never holds a value of a property.
/// @blocking it does not wait for the broker.
std::unique_ptr<Source> open_kafka(const KafkaOptions& options);

/// Which brokers a Kafka publisher publishes to, and how.
struct KafkaPublisherOptions {
  /// The brokers to connect to first: "host:9092,other:9092".
  std::string brokers;

  /// How long it waits for the broker's confirmation, at most a day. It should be less than half of
  /// `RelayOptions::lease`.
  std::chrono::milliseconds timeout{10'000};

  /// Other properties of librdkafka, as `KafkaOptions::properties`.
  std::map<std::string, std::string> properties = {};
};

/// Reads the options from a URL, as the command does: `kafka://HOST:PORT,HOST:PORT`. Its parameters are properties of
/// librdkafka, but not `group.instance.id`, `session.timeout.ms` and `max.poll.interval.ms`, which are those of a
/// consumer, and not `message.timeout.ms`, because `timeout` is this time. A password is not a parameter: the property
/// `sasl.password` is taken from the environment variable TXINBOX_KAFKA_PASSWORD if it is set.
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

/// A republisher for `redrive`, on librdkafka. It publishes a record of a Kafka source to the topic
/// `Republication::destination`, with its key, its body and its headers. A tombstone stays one. It creates no topic.
/// Which messages are confirmed, and what it throws, is as for `kafka_publisher`. If a right is missing for all topics,
/// it throws `Error` access_refused.
///
/// @errors   `Error` invalid_argument for the options.
/// @blocking as `kafka_publisher`.
/// @threads  one call of `redrive`.
Republisher kafka_republisher(const KafkaPublisherOptions& options);

TXINBOX_API_END
}  // namespace txinbox
