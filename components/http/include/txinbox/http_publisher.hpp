#pragma once

/// @file
/// Publishes by HTTP: a publisher for an `OutboxRelay` that sends each message to a webhook. There is no HTTP library
/// in this header. txinbox/http/httplib_sender.hpp connects it to cpp-httplib.

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <txinbox/http.hpp>
#include <txinbox/outbox_relay.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

/// Where an HTTP publisher sends messages, and how.
struct HttpPublisherOptions {
  /// The URL of the webhook: "https://shop.example/events?source=orders". It holds no user and no password. Path and
  /// query are sent as they are, so characters that a URL cannot have must be percent-encoded.
  std::string url;

  /// How long a call of the publisher may take. It begins no request after a quarter of it, and ends each
  /// request after half of it, whatever the server sends. It should be less than half of `RelayOptions::lease`. From 8
  /// ms to a day.
  std::chrono::milliseconds timeout{10'000};

  /// The content type of a message that has no header `content-type` of its own.
  std::string content_type = "application/json";

  /// The field Authorization, such as "Bearer 8e03". Empty: none. It is in no error text.
  std::string authorization = {};

  /// The authorities to trust, as a PEM file, for https. Empty: those of the system.
  std::string ca_file = {};
};

/// Reads the options from a URL, as the command does. `authorization` is taken from the environment variable
/// TXINBOX_HTTP_AUTHORIZATION.
///
/// @errors `Error` invalid_argument for a URL that is not valid, or that holds a password. The text does not hold the
///         URL.
HttpPublisherOptions http_publisher_options_from_url(std::string_view url);

/// How long a sender may wait.
struct HttpTimeouts {
  std::chrono::milliseconds connect;  ///< For a connection.
  std::chrono::milliseconds write;    ///< Without a byte that the server takes.
  std::chrono::milliseconds total;    ///< For the whole request, from the connection to the end of the answer.
};

/// Sends a request to the server of the URL, and returns the answer; none if no complete answer came in time. It must
/// keep `HttpTimeouts::total` also if the server sends a byte now and then. It follows no redirection. Only the status
/// and the fields of the answer are needed.
///
/// @errors throws if the server cannot be reached, so that nothing was sent.
using HttpSend = std::function<std::optional<http::Response>(const http::Request&, HttpTimeouts)>;

/// A publisher for an `OutboxRelay` that sends each message with POST. The body is the payload. The fields are
/// `Idempotency-Key` (the message id), `Content-Type`, `Txinbox-Topic`, `Txinbox-Key` and `Txinbox-Type` if they are
/// not empty, with percent-encoding, and `OutgoingMessage::headers`.
///
/// | Answer | The message |
/// |---|---|
/// | 200 to 299 | is confirmed |
/// | 400, 413, 414, 415, 422, 431 | is rejected: the message itself is not valid there |
/// | another status | fails |
/// | 429, 502, 503, 504 | fails. The other messages of the call are postponed |
/// | the server cannot be reached | is postponed. If no message was answered, the call throws |
/// | none in time, or the server closes the connection | as above, but fails if a later one was answered |
///
/// `Retry-After` is respected, up to an hour: of 429 and 503 for all messages, otherwise for the message. A message
/// whose headers HTTP cannot carry, or that has a header which HTTP or the publisher needs for itself, such as
/// `Host` or `Idempotency-Key`, is rejected. So is a message with two headers that a server cannot tell apart. Names
/// are compared without case, and an underscore counts as a hyphen, as in CGI.
///
/// Messages are sent one after the other. Give each relay a publisher of its own. While `send` runs and while it is
/// destroyed, SIGPIPE is blocked in the thread, so a server that closes its connection cannot end the process.
///
/// @errors   `Error` invalid_argument for the options, or an empty `send`.
/// @blocking a call of the publisher takes at most `timeout`, if `send` keeps `HttpTimeouts::total`.
/// @threads  one relay.
Publisher http_publisher(const HttpPublisherOptions& options, HttpSend send);

TXINBOX_API_END
}  // namespace txinbox
