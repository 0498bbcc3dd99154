#pragma once

/// @file
/// Consumes from RabbitMQ: a source for `run`. Publishes to it: a publisher for an `OutboxRelay`.

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

/// Where a RabbitMQ broker is, and as whom to log in.
struct RabbitMqServer {
  std::string host = "localhost";  ///< The name or address of the broker.
  std::uint16_t port = 0;          ///< 0: 5672, or 5671 with TLS.
  std::string vhost = "/";         ///< The virtual host.
  std::string user = "guest";      ///< The user. The broker lets `guest` in only from its own machine.
  std::string password = {};       ///< The user's password. It is in no error text and in no event.

  bool tls = false;                   ///< Whether the connection is encrypted, and the broker verified.
  std::string ca_file = {};           ///< The authorities to trust, as a PEM file. Empty: those of the system.
  std::string certificate_file = {};  ///< The client's own certificate, as a PEM file. Empty: none.
  std::string key_file = {};          ///< The key of that certificate, as a PEM file without a password.
};

/// Which queue a RabbitMQ source consumes, and how.
struct RabbitMqOptions {
  RabbitMqServer server = {};  ///< The broker.
  std::string queue = {};      ///< The queue. It must exist.

  /// The queue for dead letters; empty: there is none. It must exist. See `DeadLetter` for what becomes one.
  ///
  /// A dead letter is the message with its properties and its headers, and with these headers: `txinbox-reason`,
  /// `txinbox-error-class`, `txinbox-consumer`, `txinbox-key` (the business key), `txinbox-origin`, `txinbox-source`
  /// (the queue) and `txinbox-failures`. They replace headers of the message with these names. It never expires. The
  /// headers CC and BCC become `txinbox-cc` and `txinbox-bcc`. If the headers do not fit into a frame, the dead letter
  /// has none of the message's own headers, and `txinbox-dropped-headers` with their number.
  std::string dead_letters = {};

  /// The most messages that the broker delivers without an acknowledgement. It should be at least the sum of
  /// `RunOptions::max_in_flight`, which is 400 for each worker by default, and the number of messages that may wait for
  /// a retry. So raise it for three workers or more.
  std::uint16_t prefetch = 1000;

  /// If nothing comes from the other side for twice this time, the connection is lost. The source answers heartbeats
  /// while handlers run, because `run` polls at least once a second. From 4 s to an hour.
  std::chrono::seconds heartbeat{30};

  bool exclusive = false;  ///< Whether no other consumer may consume the queue.

  /// If the broker has not confirmed a dead letter after this time, the source publishes it again, on a new connection.
  /// No call waits for it for longer than 2 s: the next attempt of `run` takes an answer that came later. At most a
  /// day.
  std::chrono::milliseconds dead_letter_timeout{10'000};

  /// The delivery limit of a quorum queue: set it to the value of `x-delivery-limit`, or of the policy, if the queue
  /// has one. The limit cannot be read over AMQP. 0: there is none, or it is not known. A quorum queue of RabbitMQ 4
  /// has the limit 20 by default.
  ///
  /// The broker drops a message that comes back to it more often. So at the delivery with this number, the source does
  /// not give the message to `run`, but publishes it as a dead letter with the reason `delivery_limit`. Its headers
  /// `txinbox-consumer` and `txinbox-key` are empty. The source reports a warning; `RunSummary::dead_letters` does not
  /// count it. One delivery is left then, for the case that the process ends before the dead letter is confirmed. The
  /// first delivery always goes to `run`. Without `dead_letters`, all deliveries do.
  int delivery_limit = 0;
};

/// Reads the options from a URL, as the command does: `amqp://USER@HOST:PORT/VHOST/QUEUE`, or `amqps://` with TLS.
/// Write `%2F` for the virtual host `/`.
///
/// Parameters: `dead_letters`, `prefetch`, `heartbeat` (seconds), `delivery_limit`, `exclusive` (true or false),
/// `ca_file`, `certificate_file`, `key_file`. The password is taken from the environment variable
/// TXINBOX_RABBITMQ_PASSWORD.
///
/// @errors `Error` invalid_argument for what is missing or not valid, and for a password in the URL. The text does not
///         hold the URL.
RabbitMqOptions rabbitmq_options_from_url(std::string_view url);

/// A source for RabbitMQ, on rabbitmq-c. It connects at the first `poll`.
///
/// - There are no lanes: RabbitMQ keeps no order for a message that comes back. `Incoming::key` is none.
/// - `Incoming::id` is the property message-id, or "queue@tag". The headers are these properties:
///   `message-id`, `type`, `correlation-id`, `app-id`, `content-type`, `content-encoding`; then those of the message,
///   as text. A header `message-id`, or with the name of another of these properties that the message has, is listed
///   with `header:` before its name.
/// - Numbers in headers have an exact text, such as "-7", "1e-07" or "12.50". A timestamp is in seconds. Booleans are
///   "true" and "false". Tables and arrays are empty.
/// - A message that fails stays unacknowledged in the source. The broker counts no delivery for a retry. It counts one
///   for each lost connection, and for each channel that it closes because of its consumer_timeout. See
///   `delivery_limit`.
/// - Dead letters have a connection of their own. Whatever happens to a dead letter, the source goes on.
/// - If the queue or the dead-letter queue does not exist at the start, or the queue is a stream, `poll` throws `Error`
///   broker_refused. If the user, the password or the broker's certificate is refused, it throws `Error`
///   access_refused. The same is true if another consumer has the queue for itself. If the user may not publish dead
///   letters, `poll` throws `Error` access_refused before it takes a message. If the user loses this right later,
///   `dead_letter` or `poll` throws it.
///
/// @errors `Error` invalid_argument for the options.
/// @blocking it does not wait for the broker. `poll`, `acknowledge`, `dead_letter` and `close` return within 5 s,
///           whatever the broker does. The system's search for the address of `host` is not limited.
std::unique_ptr<Source> open_rabbitmq(const RabbitMqOptions& options);

/// Where a RabbitMQ publisher publishes, and how.
struct RabbitMqPublisherOptions {
  RabbitMqServer server = {};  ///< The broker.

  /// The exchange, which must exist. Empty: the default exchange, which sends a message to the queue that has the name
  /// of its topic.
  std::string exchange = {};

  /// How long a call waits for the broker: to connect, to send and to be confirmed. At most a day. It should be less
  /// than half of `RelayOptions::lease`.
  std::chrono::milliseconds timeout{10'000};
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

/// A republisher for `redrive`, on rabbitmq-c. It publishes a delivery of a RabbitMQ source to the queue
/// `Republication::destination`, through the default exchange. The message keeps its properties, except expiration and
/// user-id, and its headers. CC and BCC become `txinbox-cc` and `txinbox-bcc`. Which messages are confirmed, and what
/// it throws, is as for `rabbitmq_publisher`.
///
/// @errors   `Error` invalid_argument for the options, and if they name an exchange.
/// @blocking as `rabbitmq_publisher`.
/// @threads  one call of `redrive`.
Republisher rabbitmq_republisher(const RabbitMqPublisherOptions& options);

TXINBOX_API_END
}  // namespace txinbox
