#pragma once

/// @file
/// Publishes to RabbitMQ: a publisher for an `OutboxRelay`.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <txinbox/outbox_relay.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

/// Where a RabbitMQ publisher publishes, and how.
struct RabbitMqPublisherOptions {
  std::string host = "localhost";  ///< The name or address of the broker.
  std::uint16_t port = 0;          ///< 0: 5672, or 5671 with TLS.
  std::string vhost = "/";         ///< The virtual host.
  std::string user = "guest";      ///< The user. The broker lets `guest` in only from its own machine.
  std::string password = {};       ///< The user's password. It is in no error text.

  /// The exchange, which must exist. Empty: the default exchange, which sends a message to the queue that has the name
  /// of its topic.
  std::string exchange = {};

  /// How long a call waits for the broker: to connect, to send and to be confirmed. It should be less than half of
  /// `RelayOptions::lease`.
  std::chrono::milliseconds timeout{10'000};

  bool tls = false;                   ///< Whether the connection is encrypted, and the broker verified.
  std::string ca_file = {};           ///< The authorities to trust, as a PEM file. Empty: those of the system.
  std::string certificate_file = {};  ///< The client's own certificate, as a PEM file. Empty: none.
  std::string key_file = {};          ///< The key of that certificate, as a PEM file without a password.
};

/// Reads the options from a URL, as the command does: `amqp://USER@HOST:PORT/VHOST/EXCHANGE`, or `amqps://` with TLS.
/// Without `/EXCHANGE`, it is the default exchange. Write `%2F` for the virtual host `/`.
///
/// Parameters: `ca_file`, `certificate_file`, `key_file`. The password is taken from the environment variable
/// TXINBOX_RABBITMQ_PASSWORD.
///
/// @errors `Error` invalid_argument for what is missing or not valid, and for a password in the URL. The text does not
///         hold the URL.
RabbitMqPublisherOptions rabbitmq_publisher_options_from_url(std::string_view url);

/// A publisher for an `OutboxRelay`, on rabbitmq-c. It connects at the first message.
///
/// - `OutgoingMessage::topic` is the routing key. The message is persistent.
/// - The property message-id is the message id, and the property type is `OutgoingMessage::type`. The headers are `key`
///   for a message with a key, and `OutgoingMessage::headers`. A header `key`, `message-id` or `type` of the message
///   gets `header:` before its name.
/// - A message is confirmed when the broker has confirmed it, and a queue takes it. If no queue takes it, or the broker
///   refuses it with a nack, or the user may not publish it, it fails. If it is too large for the broker, or not valid
///   there, it is rejected.
/// - If the connection is lost, the messages that were not confirmed are postponed. If none was confirmed, or refused,
///   it throws std::runtime_error. The same is true if the broker does not confirm in time, and does not answer on a
///   new connection either. If it does answer there, the messages that were not confirmed fail, unless the broker says
///   that it takes none because its memory or disk is full: then they are postponed, or the call throws. It throws
///   `Error` broker_refused if the exchange does not exist, and `Error` access_refused if the user, the password or the
///   broker's certificate is refused.
///
/// Give each relay a publisher of its own. Copies of a publisher share one connection.
///
/// @errors   `Error` invalid_argument for the options.
/// @blocking it does not wait for the broker. A call of the publisher waits at most `timeout` and a second for the
///           broker, and for the name server of the host.
/// @threads  one relay.
Publisher rabbitmq_publisher(const RabbitMqPublisherOptions& options);

TXINBOX_NAMESPACE_END
}  // namespace txinbox
