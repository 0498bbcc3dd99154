#pragma once

// A broker with one queue, like RabbitMQ: each message goes to one of the members. It comes again if the member's
// channel ends before the message is acknowledged.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
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

  void forget() override;
  void recreate() override;

  /// Also moves messages back that were set aside. Ends the channels of members that have not polled for the time of
  /// the heartbeat.
  void step() override;

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
  void wake_members() noexcept;

  std::vector<Queued> messages_;
  std::deque<std::size_t> ready_;              ///< Those that nobody holds.
  std::multimap<SimTime, std::size_t> aside_;  ///< Those that were delivered too often. They come back at this time.
  std::vector<QueueSource*> members_;
};

class QueueSource final : public SimSource {
 public:
  explicit QueueSource(QueueBroker& broker) : SimSource(broker), broker_(broker) {}
  ~QueueSource() override;

  void acknowledge(std::span<const Incoming* const> messages) override;
  bool holds(const Incoming& message) const override;
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
  void connect() override;
  std::vector<Incoming> take(std::size_t max) override;
  const BrokerMessage& message_of(const Incoming&) const override;
  bool may_receive() const noexcept override { return has_channel_; }

  QueueBroker& broker_;
  bool has_channel_ = false;
  std::uint64_t channel_ = 0;
  bool has_lost_ = false;  ///< The channel has ended since the last poll.
  std::vector<Ticket> tickets_;
};

}  // namespace txinbox::sim
