#pragma once

// A simulated broker with lanes, like Kafka: each lane belongs to one member of the group, which reads it from the last
// offset that was acknowledged.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <txinbox/source.hpp>

#include "sim/story.hpp"
#include "sim/threads.hpp"

namespace txinbox::sim {

struct BrokerMessage {
  std::string id;
  std::string body;
  std::optional<std::string> key = {};
};

struct BrokerFaults {
  double lose_acknowledgement = 0;  ///< Of a call: the connection ends before the broker gets it.
  double refuse_dead_letter = 0;

  friend bool operator==(const BrokerFaults&, const BrokerFaults&) = default;
};

class SimSource;

class Broker {
 public:
  /// `can_rewind`: whether a member can read messages of its lane again.
  Broker(std::size_t lanes, bool can_rewind) : lanes_(lanes), can_rewind_(can_rewind) {}

  BrokerFaults faults;

  /// It is called for each message when the broker learns that it is done. The dead letter is null if there is none.
  std::function<void(const BrokerMessage&, const DeadLetter*)> on_end;

  std::size_t lanes() const noexcept { return lanes_.size(); }
  void publish(std::size_t lane, BrokerMessage);

  /// Takes a lane from its member and gives it to another one, or back.
  void move_lane();

  /// Removes members that have not polled for the time-out of the session.
  void expel_silent();

  /// What is not acknowledged in the lanes for which `counts` is true.
  std::optional<Waiting> waiting(const std::function<bool(std::size_t lane)>& counts) const;
  std::uint64_t deliveries() const noexcept { return deliveries_; }

 private:
  friend class SimSource;

  struct Lane {
    std::vector<std::shared_ptr<const BrokerMessage>> messages = {};
    std::size_t acknowledged = 0;
    SimSource* owner = nullptr;
    std::uint64_t epoch = 0;  ///< It grows when the owner changes.
    std::size_t next = 0;     ///< What the owner gets next.
    bool is_paused = false;
  };

  void join(SimSource&);
  void leave(SimSource&) noexcept;
  void give(Lane&, SimSource*);
  void balance();

  std::vector<Lane> lanes_;
  const bool can_rewind_;
  std::vector<SimSource*> members_;
  std::uint64_t deliveries_ = 0;
};

/// A member of the group.
class SimSource final : public Source {
 public:
  explicit SimSource(Broker& broker);
  ~SimSource() override;

  std::vector<Incoming> poll(std::size_t max, std::chrono::milliseconds wait) override;
  void acknowledge(std::span<const Incoming* const> messages) override;
  bool has_dead_letters() const override { return true; }
  void dead_letter(std::span<DeadLetter> letters) override;
  bool holds(const Incoming& message) const override;
  void pause(std::uint64_t lane) override;
  void resume(std::uint64_t lane) override;
  bool can_rewind() const override { return broker_.can_rewind_; }
  void rewind(const Incoming& first) override;
  void wake() noexcept override;
  SourceStatus status() override;
  void close() noexcept override;

  /// How many messages somebody still holds that `poll` has returned.
  std::size_t held() const noexcept { return *held_; }

  /// It is called when `poll` has taken messages.
  std::function<void()> on_taken;

 private:
  friend class Broker;
  struct Ticket {
    std::size_t lane, offset;
    std::uint64_t epoch;
  };
  /// The owner of what an `Incoming` points to.
  struct Delivered {
    std::shared_ptr<const BrokerMessage> message;
    std::shared_ptr<std::size_t> held;
    ~Delivered() { --*held; }
  };
  Ticket ticket_of(const Incoming&) const;
  std::vector<Incoming> take(std::size_t max);

  Broker& broker_;
  bool is_member_ = false;
  bool has_lost_ = false;    ///< Lanes were revoked since the last poll.
  bool has_gained_ = false;  ///< Lanes were assigned.
  bool is_woken_ = false;
  SimTime last_poll_{0};
  std::vector<Ticket> tickets_;
  const std::shared_ptr<std::size_t> held_ = std::make_shared<std::size_t>();
};

}  // namespace txinbox::sim
