#pragma once

/// @file
/// Consumes from RocketMQ 5: a source for `run`. Publishes to it: a publisher for an `OutboxRelay`.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <txinbox/outbox_relay.hpp>
#include <txinbox/redrive.hpp>
#include <txinbox/source.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

/// Where a RocketMQ proxy is, and as whom to log in.
struct RocketMqServer {
  std::string host = "localhost";  ///< The name or address of the proxy.
  std::uint16_t port = 8081;       ///< The proxy's gRPC port.
  std::string access_key = {};     ///< The name of the user; empty: the broker asks for none.
  std::string secret = {};  ///< The user's secret. It signs each request. It is in no error text and in no event.

  bool tls = false;                   ///< Whether the connection is encrypted, and the proxy verified.
  std::string ca_file = {};           ///< The authorities to trust, as a PEM file. Empty: those of the system.
  std::string certificate_file = {};  ///< The client's own certificate, as a PEM file. Empty: none.
  std::string key_file = {};          ///< The key of that certificate, as a PEM file without a password.
};

/// Which topic a RocketMQ source consumes, and how.
struct RocketMqOptions {
  RocketMqServer server = {};  ///< The proxy.
  std::string topic = {};      ///< The topic. It must exist.

  /// The consumer group. Use one group for each consumer name of the inbox. For a topic of the type FIFO, the group
  /// must be ordered (`mqadmin updateSubGroup -o true`).
  std::string group = {};

  /// Which messages the broker gives to this group: "*", or tags as "paid || sent". All consumers of a group must have
  /// the same.
  std::string tags = "*";

  /// For this time, from 10 s to 12 h, other consumers do not get a message that was delivered. The source prolongs it
  /// when half of it is over, as long as `run` holds the message. After a crash, the message comes again when it is
  /// over.
  std::chrono::milliseconds invisible{60'000};

  /// How many requests for messages wait at the broker while there are messages, 1 to 16. Each brings up to 32.
  std::uint16_t receives = 4;

  /// How long the source waits for the broker's answer to a dead letter, at most a day. `run` polls no messages and
  /// sees no stop meanwhile. After it, `run` tries again later.
  std::chrono::milliseconds dead_letter_timeout{3'000};
};

/// Reads the options from a URL, as the command does: `rocketmq://ACCESS_KEY@HOST:PORT/TOPIC?group=GROUP`, or
/// `rocketmqs://` with TLS. The access key may be left out.
///
/// Parameters: `group`, `tags`, `invisible` (seconds), `receives`, `ca_file`, `certificate_file`, `key_file`. The
/// secret is taken from the environment variable TXINBOX_ROCKETMQ_SECRET.
///
/// @errors `Error` invalid_argument for what is missing or not valid, and for a secret in the URL. The text does not
///         hold the URL.
RocketMqOptions rocketmq_options_from_url(std::string_view url);

/// A source for RocketMQ 5, by gRPC through its proxy. It connects at the first `poll`.
///
/// - The messages of a message group of a FIFO topic are one lane. Messages of other topics have no lane.
/// - `Incoming::key` is the first of the message's keys, `Incoming::id` its message id. The headers are `tag`,
///   `keys` (one for each key) and `message-group`, then the user's properties, sorted by name. If the message has one
///   of these three, a user's property of the same name is listed with `header:` before its name. A user's property
///   `keys` always is.
///   `Incoming::deliveries` counts what the broker counts.
/// - RocketMQ gives messages that were sent in one request the id, the keys and the properties of the first of them. So
///   take the business key from the body, unless every producer sends each message in a request of its own.
/// - A message that fails stays here, and its invisible time is prolonged. The broker counts no delivery for that.
/// - A dead letter goes to the queue that the broker has for the group, `%DLQ%GROUP`, as it is. It has no header that
///   says why. The event `dead_letter` of `run` has the reason, and `txinbox failed list` shows failures of handlers.
/// - If the topic or the group does not exist at the start, `poll` throws `Error` broker_refused after some seconds: a
///   broker that has just started does not know its topics yet. If the user, the secret or the proxy's certificate is
///   refused, it throws `Error` access_refused.
/// - A message whose body is compressed is given as it was before. One that cannot be decompressed has no body.
///
/// @errors `Error` invalid_argument for the options.
/// @blocking it does not wait for the broker.
std::unique_ptr<Source> open_rocketmq(const RocketMqOptions& options);

/// Where a RocketMQ publisher publishes, and how.
struct RocketMqPublisherOptions {
  RocketMqServer server = {};  ///< The proxy.

  /// Whether the topics are of the type FIFO. Then the key of a message is its message group, so consumers get the
  /// messages of a key in their order. A FIFO topic refuses messages without a key.
  bool fifo = false;

  /// How long a call waits for the broker's confirmations, at most a day. It should be less than half of
  /// `RelayOptions::lease`.
  std::chrono::milliseconds timeout{10'000};
};

/// Reads the options from a URL, as the command does: `rocketmq://ACCESS_KEY@HOST:PORT`, or `rocketmqs://` with TLS.
/// The access key may be left out.
///
/// Parameters: `fifo` (true or false), `ca_file`, `certificate_file`, `key_file`. The secret is taken from the
/// environment variable TXINBOX_ROCKETMQ_SECRET.
///
/// @errors `Error` invalid_argument for what is missing or not valid, and for a secret in the URL. The text does not
///         hold the URL.
RocketMqPublisherOptions rocketmq_publisher_options_from_url(std::string_view url);

/// A publisher for an `OutboxRelay`, by gRPC through RocketMQ's proxy. It connects at the first message.
///
/// - `OutgoingMessage::topic` is the topic, which must exist. The key is the message's only key of RocketMQ, unless it
///   has a space in it.
/// - The message id is that of RocketMQ, too. The properties are `id`, `type` (unless it is empty), `key` (unless it is
///   empty) and `OutgoingMessage::headers`. A header `id`, `type`, `key`, `keys` or `message-group` gets `header:`
///   before its name. The receiver takes `id` as the business key.
/// - RocketMQ takes no empty payload: such a message is rejected.
/// - Each message has a request of its own: RocketMQ gives messages that were sent in one request the same properties.
/// - A message is confirmed when the broker has answered OK for it. If the topic does not exist, or the broker is busy
///   or refuses the user, the message fails. If the broker says that the message is not valid, or too large, it is
///   rejected.
/// - A message that is not confirmed in time fails if the proxy answers another request. If it does not, the message is
///   postponed; if no message of the call was answered, the call throws std::runtime_error.
///
/// Give each relay a publisher of its own. Copies of a publisher share one connection.
///
/// @errors   `Error` invalid_argument for the options.
/// @blocking it does not wait for the broker. A call of the publisher waits at most `timeout` and a second.
/// @threads  one relay.
Publisher rocketmq_publisher(const RocketMqPublisherOptions& options);

/// A republisher for `redrive`. It publishes a delivery of a RocketMQ source to the topic
/// `Republication::destination`, with its message id, keys, tag, message group and properties. A message with a group
/// is published as a message of a FIFO topic; `fifo` has no effect. Which messages are confirmed, and what it throws,
/// is as for `rocketmq_publisher`.
///
/// The dead letters of a group are in the topic `%DLQ%GROUP`. They have no headers that say why or where they came
/// from: give `RedriveOptions` the consumer, the function that finds the key, and the topic. Consume them with another
/// group, which must exist. A dead letter that is left comes again after about 20 seconds, and the broker counts two
/// deliveries.
///
/// @errors   `Error` invalid_argument for the options.
/// @blocking as `rocketmq_publisher`.
/// @threads  one call of `redrive`.
Republisher rocketmq_republisher(const RocketMqPublisherOptions& options);

TXINBOX_API_END
}  // namespace txinbox
