#pragma once

// A broker with one queue, like RabbitMQ: each message goes to one of the members. It comes again if the member's
// channel ends before the message is acknowledged.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "sim/broker.hpp"

namespace txinbox::sim {

class QueueSource;

class QueueBroker final : public Broker {
 public:
  void publish(std::size_t lane, BrokerMessage) override;
  std::unique_ptr<SimSource> connect() override;

  /// Ends the channel of a member.
  void disturb() override;

  /// Ends the channels of members that have not polled for the time of the heartbeat.
  void expel_silent() override;

  std::optional<Waiting> waiting(const Counts& counts) const override;

 private:
  friend class QueueSource;

  struct Queued {
    std::shared_ptr<const BrokerMessage> message;
    QueueSource* holder = nullptr;
    int deliveries = 0;
    bool is_done = false;
  };

  void close_channel(QueueSource&) noexcept;

  std::vector<Queued> messages_;
  std::deque<std::size_t> ready_;  ///< Those that nobody holds.
  std::vector<QueueSource*> members_;
};

class QueueSource final : public SimSource {
 public:
  explicit QueueSource(QueueBroker& broker) : broker_(broker) {}
  ~QueueSource() override;

  std::vector<Incoming> poll(std::size_t max, std::chrono::milliseconds wait) override;
  void acknowledge(std::span<const Incoming* const> messages) override;
  bool has_dead_letters() const override { return true; }
  void dead_letter(std::span<DeadLetter> letters) override;
  bool holds(const Incoming& message) const override;
  void wake() noexcept override;
  SourceStatus status() override;
  void close() noexcept override;

 private:
  friend class QueueBroker;

  /// A delivery on a channel. The channels of a member are counted.
  struct Ticket {
    std::size_t place;
    std::uint64_t channel;
  };
  Ticket ticket_of(const Incoming& message) const { return tickets_[message.ticket]; }
  std::vector<Incoming> take(std::size_t max);

  QueueBroker& broker_;
  bool has_channel_ = false;
  std::uint64_t channel_ = 0;
  bool has_lost_ = false;  ///< The channel has ended since the last poll.
  bool is_woken_ = false;
  SimTime last_poll_{0};
  std::vector<Ticket> tickets_;
};

}  // namespace txinbox::sim
