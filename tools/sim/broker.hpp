#pragma once

// The parts of a simulated broker that the workloads need.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
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

  /// A queue sets a message aside after its third delivery. Somebody moves it back within a minute.
  bool has_delivery_limit = false;

  friend bool operator==(const BrokerFaults&, const BrokerFaults&) = default;
};

enum class BrokerKind {
  log,    ///< Lanes, as of Kafka.
  fifo,   ///< Lanes of which a member cannot read messages again, as of RocketMQ.
  queue,  ///< No lanes, as of RabbitMQ.
};

class Broker;

/// The connection of a service to a broker.
class SimSource : public Source {
 public:
  std::vector<Incoming> poll(std::size_t max, std::chrono::milliseconds wait) final;
  bool has_dead_letters() const final { return true; }
  void dead_letter(std::span<DeadLetter> letters) final;
  void wake() noexcept final;

  /// How many messages somebody still holds that `poll` has returned.
  std::size_t held() const noexcept { return *held_; }

  /// It is called when `poll` has taken messages.
  std::function<void()> on_taken;

  /// When `poll` was called last.
  SimTime last_poll() const noexcept { return last_poll_; }

 protected:
  explicit SimSource(Broker& broker) : any_broker_(broker) {}

  /// Connects if it is not connected.
  virtual void connect() = 0;

  /// Whether messages can still come in this poll. A member of a group learns only at the next one that it was removed.
  virtual bool may_receive() const noexcept { return true; }

  virtual std::vector<Incoming> take(std::size_t max) = 0;

  /// The message of a delivery that this source holds.
  virtual const BrokerMessage& message_of(const Incoming&) const = 0;

  /// Makes a delivery. It is counted as long as somebody holds it.
  Incoming deliver(const std::shared_ptr<const BrokerMessage>&, std::uint64_t ticket) const;

 private:
  Broker& any_broker_;
  bool is_woken_ = false;
  SimTime last_poll_{0};
  const std::shared_ptr<std::size_t> held_ = std::make_shared<std::size_t>();
};

class Broker {
 public:
  virtual ~Broker() = default;
  Broker(const Broker&) = delete;
  Broker& operator=(const Broker&) = delete;

  BrokerFaults faults;

  /// It is called for each message when the broker learns that it is done; again, if the broker forgets this. The dead
  /// letter is null if there is none.
  std::function<void(const BrokerMessage&, const DeadLetter*)> on_end;

  /// A queue ignores the lane.
  virtual void publish(std::size_t lane, BrokerMessage) = 0;

  virtual std::unique_ptr<SimSource> connect() = 0;

  /// Takes messages from a member, and gives them to another one, or back.
  virtual void disturb() = 0;

  /// Forgets some of the last acknowledgements, although it has confirmed them: these messages come again.
  virtual void forget() = 0;

  /// Somebody deletes the topic or the queue, and makes it anew. Producers send again what was not acknowledged, and
  /// some or all of what was, perhaps with other ids.
  virtual void recreate() = 0;

  /// Ends the connections of members that have not polled for a time. The world calls it each 20 ms.
  virtual void step() = 0;

  /// The lanes with unacknowledged messages, or the unacknowledged messages of a queue, for which `counts` is true.
  using Counts = std::function<bool(std::optional<std::size_t> lane, const BrokerMessage&)>;
  virtual std::optional<Waiting> waiting(const Counts& counts) const = 0;

  std::uint64_t deliveries() const noexcept { return deliveries_; }

 protected:
  Broker() = default;

  /// How many acknowledged messages come again at most, of a lane or of a queue.
  static constexpr std::size_t most_forgotten = 10;

  /// Calls `expel` for the members that are silent for so long that they count as away.
  template <class Member, class Expel>
  static void expel_silent(const std::vector<Member*>& members, const Expel& expel) {
    const SimTime oldest = Threads::instance()->now() - std::chrono::seconds(10);
    for (Member* const each : std::vector(members)) {
      if (each->last_poll() < oldest) expel(*each);
    }
  }

 private:
  friend class SimSource;
  std::uint64_t deliveries_ = 0;
};

std::unique_ptr<Broker> make_broker(BrokerKind, std::size_t lanes);

}  // namespace txinbox::sim
