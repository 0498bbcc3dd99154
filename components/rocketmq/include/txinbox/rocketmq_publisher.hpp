#pragma once

/// @file
/// Publishes to RocketMQ 5: a publisher for an `OutboxRelay`.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <txinbox/outbox_relay.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

/// Where a RocketMQ publisher publishes, and how.
struct RocketMqPublisherOptions {
  std::string host = "localhost";  ///< The name or address of the proxy.
  std::uint16_t port = 8081;       ///< The proxy's gRPC port.

  /// Whether the topics are of the type FIFO. Then the key of a message is its message group, so consumers get the
  /// messages of a key in their order. A FIFO topic refuses messages without a key.
  bool fifo = false;

  /// How long a call waits for the broker's confirmations. It should be less than half of `RelayOptions::lease`.
  std::chrono::milliseconds timeout{10'000};

  std::string access_key = {};  ///< The name of the user; empty: the broker asks for none.
  std::string secret = {};      ///< The user's secret. It signs each request. It is in no error text.

  bool tls = false;                   ///< Whether the connection is encrypted, and the proxy verified.
  std::string ca_file = {};           ///< The authorities to trust, as a PEM file. Empty: those of the system.
  std::string certificate_file = {};  ///< The client's own certificate, as a PEM file. Empty: none.
  std::string key_file = {};          ///< The key of that certificate, as a PEM file without a password.
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

TXINBOX_NAMESPACE_END
}  // namespace txinbox
