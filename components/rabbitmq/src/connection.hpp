#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <amqp.h>
#include <txinbox/rabbitmq.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rabbitmq {

using Clock = std::chrono::steady_clock;

/// The channel for deliveries and acknowledgements.
inline constexpr amqp_channel_t consuming_channel = 1;

/// Why a connection could not be made, or was lost.
struct Lost {
  std::string why;                ///< A text for a log. It does not contain a password.
  int reply_code = 0;             ///< The broker's reply code, for example 404. 0 if the broker has sent none.
  bool refuses_consumer = false;  ///< The broker has refused `basic.consume`.
  bool is_untrusted = false;      ///< The broker's certificate was refused.
  bool is_late = false;           ///< The broker has not confirmed in time. The connection is still open.
};

struct DestroyConnection {
  void operator()(amqp_connection_state_t connection) const noexcept { amqp_destroy_connection(connection); }
};
using ConnectionHandle = std::unique_ptr<amqp_connection_state_t_, DestroyConnection>;

/// The delivery mode of a message that survives a restart of the broker.
inline constexpr std::uint8_t persistent = 2;

/// The text must outlive the result.
amqp_bytes_t bytes_of(std::string_view text);

/// The bytes must outlive the result.
std::string_view view_of(const amqp_bytes_t& bytes);
timeval timeval_of(std::chrono::milliseconds time);

/// The reason that the broker has sent when it closed a channel or the connection.
Lost closed_by_broker(const amqp_method_t& method);

/// If the method closes a channel or the connection, throws the broker's reason as `Lost`.
void throw_if_closed(const amqp_method_t& method);

/// Throws `Lost` if a call of rabbitmq-c failed.
void require(int status, const char* what);
void require(const amqp_rpc_reply_t& reply, const char* what);

/// Checks the options.
///
/// Errors: `Error` invalid_argument.
void check(const RabbitMqServer& server);
void check(const RabbitMqOptions& options);
void check(const RabbitMqPublisherOptions& options);

inline constexpr std::chrono::seconds no_heartbeat{0};

/// Connects and logs in.
///
/// Errors: `Lost`.
///
/// @blocking until `give_up` at most. The next requests on the connection end at this time, too: see `end_requests_at`.
ConnectionHandle log_in(const RabbitMqServer& server, std::chrono::seconds heartbeat, Clock::time_point give_up);

/// The next request on the connection ends at this time. A second request needs a second call.
void end_requests_at(amqp_connection_state_t connection, Clock::time_point give_up);

/// Opens a channel.
///
/// Errors: `Lost`.
///
/// @blocking until `give_up` at most.
void open_channel(amqp_connection_state_t connection, amqp_channel_t channel, Clock::time_point give_up);

/// Turns on the broker's confirmations for messages that are published on the channel.
///
/// Errors: `Lost`.
///
/// @blocking until `give_up` at most.
void ask_for_confirmations(amqp_connection_state_t connection, amqp_channel_t channel, Clock::time_point give_up);

/// Finds out whether a queue exists. If it does not, the broker closes the channel.
///
/// Errors: `Lost`.
///
/// @blocking until `give_up` at most.
void require_queue(amqp_connection_state_t connection, amqp_channel_t channel, const std::string& queue,
                   Clock::time_point give_up);

/// Begins to consume. The channel must be open.
///
/// Errors: `Lost`.
///
/// @blocking until `give_up` at most.
void begin_to_consume(amqp_connection_state_t connection, const RabbitMqOptions& options, Clock::time_point give_up);

/// Waits 2 s at most until a small frame can be written without a wait.
///
/// Errors: `Lost` if the broker does not read.
void require_writable(amqp_connection_state_t connection);

/// Answers that the broker has closed a channel.
///
/// Errors: `Lost`.
void accept_close(amqp_connection_state_t connection, amqp_channel_t channel);

/// Throws an error if only an operator can correct the reason.
///
/// Errors: `Error` broker_refused or access_refused.
void throw_if_refused(const Lost& lost, const RabbitMqServer& server);

}  // namespace rabbitmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
