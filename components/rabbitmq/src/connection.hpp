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

/// Throws `Lost` if a call of rabbitmq-c failed.
void require(int status, const char* what);
void require(const amqp_rpc_reply_t& reply, const char* what);

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
