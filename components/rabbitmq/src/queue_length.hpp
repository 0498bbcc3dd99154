#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <amqp.h>
#include <amqp_framing.h>
#include <txinbox/version.hpp>

#include "connection.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rabbitmq {

/// The length of the queue. It is read on a channel of its own, because the broker closes the channel if it does not
/// tell the length. It never waits for the answer.
class QueueLength {
 public:
  static constexpr amqp_channel_t channel = 2;

  /// Asks again if the last question is old enough.
  ///
  /// Errors: `Lost`.
  void ask(amqp_connection_state_t connection, const std::string& queue);

  /// A method on this channel.
  ///
  /// Errors: `Lost`.
  void handle(amqp_connection_state_t connection, const amqp_method_t& method);

  /// None if the broker has not told it.
  std::optional<std::uint64_t> get() const noexcept { return length_; }

  /// The connection was lost.
  void reset() noexcept { *this = {}; }

 private:
  std::optional<std::uint64_t> length_;
  Clock::time_point next_ = {};
  bool is_open_ = false;
  bool is_asked_ = false;
};

}  // namespace rabbitmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
