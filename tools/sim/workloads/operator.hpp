#pragma once

// The operator of the consumers: a process that pauses them, and that decides about messages that are parked.

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <txinbox/connection_ref.hpp>
#include <txinbox/listener.hpp>

#include "sim/workload.hpp"

namespace txinbox::sim {

/// The operator's act for a message that is parked or torn.
struct Decision {
  bool discards = false;  ///< Otherwise the message runs again if it is parked. A torn one is always discarded.
  SimTime due{0};         ///< 0: the message is not parked now.

  /// These are set before the operator tells the database, because the answer can be lost.
  bool is_repaired = false;   ///< Its handler succeeds from now on.
  bool is_discarded = false;  ///< The message may be discarded.

  bool is_discard_done = false;  ///< The database has answered that the message is discarded.
};

class Operator {
 public:
  /// The most that a message for which the operator must decide delays those behind it: its handler fails for some
  /// seconds, then the operator looks, and needs time to decide.
  static constexpr SimTime longest_decision = std::chrono::seconds(15);

  /// `is_held` says whether `run` waits for a decision about the message, if it is parked.
  Operator(World&, std::string consumer, std::function<bool(const std::string& key)> is_held);

  /// Does the work of `main`.
  void work(const std::stop_token&);

  const Decision& decision(const std::string& key) const;

  /// The messages that are parked now, and that the operator has seen.
  std::vector<std::string> parked() const;

  /// Tells the story if a consumer with this listener begins a message although it has been paused for long.
  std::shared_ptr<Listener> listener();

 private:
  void work_once();
  void pause();
  void resume();
  bool is_paused();
  void check_begin(const std::string& key);
  void decide();
  void decide(const ConnectionRef&, const std::string& key, bool is_torn, Decision&);

  World& world_;
  const std::string consumer_;
  const std::function<bool(const std::string&)> is_held_;
  std::map<std::string, Decision> decisions_;
  std::optional<SimTime> paused_since_;  ///< The database has answered. None for a pause that ends by itself.
  SimTime resume_at_{0};
};

}  // namespace txinbox::sim
