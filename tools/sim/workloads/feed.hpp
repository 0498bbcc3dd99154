#pragma once

// The broker of a workload, and the producers that send messages to it.

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include <txinbox/run.hpp>

#include "sim/broker.hpp"
#include "sim/plan.hpp"
#include "sim/workload.hpp"

namespace txinbox::sim {

/// The breaker of `run`. Its pauses are short, so that everything is done within the time that the checks allow.
inline BreakerOptions breaker_of(const Plan& plan) {
  return {.failures = plan.breaker, .pause = std::chrono::seconds(1), .max_pause = std::chrono::seconds(10)};
}

/// Tells the story if `run` takes more messages from the source than these options allow.
void watch_held(World&, SimSource&, const RunOptions&);

/// A message that is sent now.
struct Placed {
  std::string key;
  std::size_t lane;
  std::optional<std::string> record_key;
  bool is_sent_again;  ///< Another copy goes to any lane.
};

/// Sends messages to a broker over the whole night, some of them twice.
class Feed {
 public:
  /// `prefix` is the beginning of the business keys.
  Feed(World& world, std::string prefix, std::size_t messages);

  Broker& broker() const noexcept { return *broker_; }

  /// Sends the messages that are due, and disturbs the broker. `add` is called before a message is sent, and says
  /// whether the message is stuck until the world is healed.
  void step(const std::function<bool(const Placed&)>& add);

  /// Sends another copy of a message, which is not stuck, to any lane.
  void send_again(const std::string& key);

  /// Whether a message of the lane may be stuck. Other lanes must go on.
  static bool may_be_stuck(std::size_t lane) noexcept { return lane % 2 == 0; }

  /// The work that is not done. Without `stuck`, it leaves out the lanes, or the messages of a queue, that are stuck.
  std::optional<Waiting> waiting(bool stuck) const;

 private:
  void send(const std::function<bool(const Placed&)>& add);

  World& world_;
  const std::string prefix_;
  const std::size_t messages_;
  const std::unique_ptr<Broker> broker_;
  std::size_t sent_ = 0;
  std::size_t sent_again_ = 0;  ///< By `send_again`.
  std::map<std::string, std::string> record_keys_;
  std::set<std::size_t> stuck_lanes_;
  std::set<std::string> stuck_;
};

}  // namespace txinbox::sim
