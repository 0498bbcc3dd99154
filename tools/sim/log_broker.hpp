#pragma once

// A broker with lanes, like Kafka and the FIFO topics of RocketMQ: each lane belongs to one member of the group, which
// reads it from the last offset that was acknowledged.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/broker.hpp"

namespace txinbox::sim {

class LogSource;

class LogBroker final : public Broker {
 public:
  /// `can_rewind`: whether a member can read messages of its lane again.
  LogBroker(std::size_t lanes, bool can_rewind) : lanes_(lanes), can_rewind_(can_rewind) {}

  void publish(std::size_t lane, BrokerMessage) override;
  std::unique_ptr<SimSource> connect() override;

  /// Takes a lane from its member and gives it to another one, or back.
  void disturb() override;

  void forget() override;
  void recreate() override;

  /// Removes members that have not polled for the time-out of the session.
  void step() override;

  std::optional<Waiting> waiting(const Counts& counts) const override;

 private:
  friend class LogSource;

  struct Lane {
    std::vector<std::shared_ptr<const BrokerMessage>> messages = {};
    std::size_t acknowledged = 0;
    LogSource* owner = nullptr;
    std::uint64_t epoch = 0;  ///< It grows when the owner changes.
    std::size_t next = 0;     ///< The offset of the owner's next message.
    bool is_paused = false;
  };

  void join(LogSource&);
  void leave(LogSource&) noexcept;
  void give(Lane&, LogSource*);
  static void forget_some(Lane&);
  void balance();

  std::vector<Lane> lanes_;
  const bool can_rewind_;
  std::vector<LogSource*> members_;
};

/// A member of the group.
class LogSource final : public SimSource {
 public:
  explicit LogSource(LogBroker& broker) : SimSource(broker), broker_(broker) {}
  ~LogSource() override;

  void acknowledge(std::span<const Incoming* const> messages) override;
  bool holds(const Incoming& message) const override;
  void pause(std::uint64_t lane) override;
  void resume(std::uint64_t lane) override;
  bool can_rewind() const override { return broker_.can_rewind_; }
  void rewind(const Incoming& first) override;
  SourceStatus status() override;
  void close() noexcept override;

 private:
  friend class LogBroker;
  struct Ticket {
    std::size_t lane, offset;
    std::uint64_t epoch;
  };
  Ticket ticket_of(const Incoming&) const;
  void connect() override;
  std::vector<Incoming> take(std::size_t max) override;
  const BrokerMessage& message_of(const Incoming&) const override;

  LogBroker& broker_;
  bool is_member_ = false;
  bool has_lost_ = false;    ///< Lanes were revoked since the last poll.
  bool has_gained_ = false;  ///< Lanes were assigned.
  std::vector<Ticket> tickets_;
};

}  // namespace txinbox::sim
