#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include <txinbox/rabbitmq.hpp>
#include <txinbox/source.hpp>
#include <txinbox/version.hpp>

#include "connection.hpp"
#include "dead_letter_connection.hpp"
#include "message_reader.hpp"
#include "queue_length.hpp"
#include "shared/reconnect_wait.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rabbitmq {

/// Only the thread of `poll` uses the connection. This is enough for heartbeats: `run` polls at least once a second,
/// and rabbitmq-c sends a due heartbeat whenever a frame is read.
///
/// No wait for the broker is long, so that `run` ends soon after a stop: a message is put together from its frames as
/// they come, and `poll` makes one step of connecting at a time.
class RabbitMqSource final : public Source {
 public:
  explicit RabbitMqSource(const RabbitMqOptions& options);
  ~RabbitMqSource() override;

  std::vector<Incoming> poll(std::size_t max, std::chrono::milliseconds wait) override;
  void acknowledge(std::span<const Incoming* const> messages) override;
  bool has_dead_letters() const override { return !options_.dead_letters.empty(); }
  void dead_letter(std::span<DeadLetter> letters) override;
  bool holds(const Incoming& message) const override;
  void wake() noexcept override;
  SourceStatus status() override;
  void close() noexcept override;

 private:
  bool is_connected(std::chrono::milliseconds wait);
  void connect();
  void lost(const Lost& why);
  void disconnect();
  void read_frames(Clock::time_point until);
  bool read_frame();
  void handle_frame(const amqp_frame_t& frame);
  void handle_method(const amqp_method_t& method);
  void receive();
  void warn_of_delivery_limit(const Incoming& incoming);
  void publish_expiring();
  void acknowledge_now(std::uint64_t tag, bool multiple);
  void sleep(std::chrono::milliseconds wait);

  const RabbitMqOptions options_;
  const std::string name_;
  ConnectionHandle connection_;
  bool is_consuming_ = false;           ///< The connection is complete.
  Clock::time_point connected_ = {};    ///< When it was completed.
  std::uint64_t epoch_ = 0;             ///< The number of connections until now. A tag belongs to one connection.
  std::map<std::uint64_t, bool> tags_;  ///< The tags that are not acknowledged, and whether the message is done.
  MessageReader reader_;
  std::deque<Incoming> received_;  ///< The messages that `run` does not have yet.
  std::deque<Incoming> expiring_;  ///< The messages near the delivery limit. `run` does not get them.
  Clock::time_point next_expiring_ = {};
  bool was_warned_ = false;  ///< Whether `warn_of_delivery_limit` has reported.
  DeadLetterConnection letters_{options_};
  QueueLength queue_length_;
  bool asked_for_right_ = false;  ///< Whether `check_right` was called.
  bool was_connected_ = false;
  bool is_closed_ = false;
  std::uint64_t reconnects_ = 0;
  bool was_told_ = false;  ///< Whether a failure to connect was reported.
  component::ReconnectWait reconnect_{std::chrono::seconds(30)};
  int woken_ = -1;  ///< A descriptor that is readable after `wake`.
};

}  // namespace rabbitmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
