#pragma once

// Relays that publish the outbox, producers that add messages to it, and a receiver that counts.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sqlite3.h>
#include <txinbox/outbox_relay.hpp>

#include "sim/workload.hpp"

namespace txinbox::sim {

class Publishing final : public Workload {
 public:
  explicit Publishing(World& world) : Workload(world), made_(world.plan.producers) {}

  /// Adds some messages to the outbox, in the transaction of a handler that writes the effect of `cause`. The messages
  /// of a sequence must be published in the order of their positions. `sequence` is empty if they have no order.
  void add(::sqlite3*, const std::string& cause, const std::string& sequence, std::size_t position);

  /// Whether the message `cause` may have its effect behind those of later messages of its sequence.
  std::function<bool(const std::string& cause)> may_be_late = [](const std::string&) { return false; };

  std::vector<std::string> services() const override;
  void serve(std::size_t service, const std::stop_token&) override;
  std::optional<Waiting> waiting(bool stuck) override;
  void check_end() override;
  std::uint64_t deliveries() const noexcept override { return deliveries_; }

 private:
  /// The behaviour of the receiver for a message.
  enum class Act {
    takes,
    rejects,    ///< Always: the message can never be published.
    is_stuck,   ///< It refuses the message until the world is healed.
    is_poison,  ///< The call throws, until the world is healed.
  };
  struct Expected {
    std::string cause;
    std::string sequence;
    std::size_t position;
    Act act;
    int failures = 0;  ///< How often the relay has learned that this message, and no other one, has failed.
    int published = 0;
    std::string id = {};  ///< Of the message, since it was published.
  };

  void relay(const std::stop_token&);
  void produce(std::size_t producer, const std::stop_token&);
  Act draw_act() const;

  /// The faults that can happen now.
  ReceiverFaults faults() const { return world_.is_quiet ? ReceiverFaults() : world_.plan.receiver; }

  std::vector<PublishResult> receive(std::span<const OutgoingMessage>);
  PublishResult receive_one(const OutgoingMessage&);
  void take(const OutgoingMessage&);

  /// The messages of the outbox that are parked, or that are not.
  std::vector<std::string> in_outbox(bool parked);
  bool may_be_parked(const Expected&) const;

  std::map<std::string, Expected> expected_;           ///< By the payload.
  std::map<std::string, std::string> payloads_;        ///< Of each id that was published.
  std::map<std::string, std::size_t> last_positions_;  ///< The greatest published position of each sequence.
  std::set<std::string> stuck_sequences_;
  std::vector<std::size_t> made_;  ///< How many transactions each producer has committed.
  std::uint64_t deliveries_ = 0;
};

}  // namespace txinbox::sim
