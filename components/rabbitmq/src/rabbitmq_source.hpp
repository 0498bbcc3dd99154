#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <txinbox/rabbitmq.hpp>
#include <txinbox/source.hpp>
#include <txinbox/version.hpp>

#include "connection.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rabbitmq {

/// Only the thread of `poll` uses the connection. This is enough for heartbeats: `run` polls at least once a second,
/// and rabbitmq-c sends a due heartbeat whenever a frame is read.
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
  /// The broker's answer to the dead letter that was published last.
  enum class Confirmation { none, confirmed, refused };

  bool is_connected(std::chrono::milliseconds wait);
  void lost(const Lost& why);
  void disconnect();
  void read_frames(Clock::time_point until);
  bool read_frame(std::chrono::milliseconds wait);
  void handle_method(amqp_channel_t channel, const amqp_method_t& method);
  void receive(const amqp_basic_deliver_t& delivery);
  Confirmation publish(const DeadLetter& letter);
  void answered(std::uint64_t tag, Confirmation confirmation);
  void publishing_was_closed(const amqp_method_t& method);
  void open_publishing(Clock::time_point give_up);
  void acknowledge_now(std::uint64_t tag, bool multiple);
  void ask_for_lag();
  void sleep(std::chrono::milliseconds wait);

  const RabbitMqOptions options_;
  const std::string name_;
  ConnectionHandle connection_;
  std::uint64_t epoch_ = 0;             ///< The number of connections until now. A tag belongs to one connection.
  std::map<std::uint64_t, bool> tags_;  ///< The tags that are not acknowledged, and whether the message is done.
  std::deque<Incoming> received_;       ///< The messages that `run` does not have yet.
  bool publishing_is_open_ = false;
  std::uint64_t published_ = 0;  ///< The tag of the last dead letter on the publishing channel.
  bool was_returned_ = false;
  Confirmation confirmation_ = Confirmation::none;
  std::optional<std::uint64_t> lag_;
  Clock::time_point next_lag_ = {};
  bool was_connected_ = false;
  bool is_closed_ = false;
  std::uint64_t reconnects_ = 0;
  std::chrono::milliseconds backoff_{};
  Clock::time_point next_try_ = {};
  std::minstd_rand random_{std::random_device()()};
  int woken_ = -1;  ///< A descriptor that is readable after `wake`.
};

}  // namespace rabbitmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
