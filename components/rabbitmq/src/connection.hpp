#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <amqp.h>
#include <txinbox/rabbitmq.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rabbitmq {

/// The channel of deliveries and acknowledgements, and that of dead letters.
inline constexpr amqp_channel_t consuming_channel = 1;
inline constexpr amqp_channel_t publishing_channel = 2;

/// Why a connection could not be made, or was lost.
struct Lost {
  std::string why;            ///< For a log: no password.
  int reply_code = 0;         ///< The broker's, such as 404; 0 if the broker said nothing.
  bool is_untrusted = false;  ///< The broker's certificate was refused.
};

struct DestroyConnection {
  void operator()(amqp_connection_state_t connection) const noexcept { amqp_destroy_connection(connection); }
};
using ConnectionHandle = std::unique_ptr<amqp_connection_state_t_, DestroyConnection>;

amqp_bytes_t bytes_of(const std::string& text);
timeval timeval_of(std::chrono::milliseconds time);

/// Throws what the broker said when it closed the channel or the connection, if the method is one of these two.
void throw_if_closed(const amqp_method_t& method);

/// Throws `Lost` if a call of rabbitmq-c failed.
void require(int status, const char* what);
void require(const amqp_rpc_reply_t& reply, const char* what);

/// Checks the options.
///
/// Errors: `Error` invalid_argument.
void check(const RabbitMqOptions& options);

/// Connects and logs in.
///
/// Errors: `Lost`.
///
/// @blocking at most `step` to connect, and at most as long to log in. Later requests on the connection wait as long.
ConnectionHandle log_in(const RabbitMqOptions& options, std::chrono::milliseconds step);

/// Opens a channel.
///
/// Errors: `Lost`.
void open_channel(amqp_connection_state_t connection, amqp_channel_t channel);

/// Lets the broker confirm what is published on the channel.
///
/// Errors: `Lost`.
void ask_for_confirmations(amqp_connection_state_t connection, amqp_channel_t channel);

/// Connects, logs in, opens the channels, checks the queues and begins to consume.
///
/// Errors: `Lost`.
///
/// @blocking at most 10 s.
ConnectionHandle connect(const RabbitMqOptions& options);

/// Throws what somebody must fix.
///
/// Errors: `Error` broker_refused or access_refused.
void throw_if_refused(const Lost& lost, const RabbitMqOptions& options);

}  // namespace rabbitmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
