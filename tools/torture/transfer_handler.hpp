#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <txinbox/tx_consumer.hpp>

#include "torture/conduct.hpp"
#include "torture/messages.hpp"
#include "torture/plan.hpp"

namespace txinbox::torture {

/// The exception of a handler that fails on purpose.
class PlannedFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A handler got the message of another index. This is an imbalance.
class WrongMessage : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// The name of a handler's run. It shows in the ledger which run took effect.
class RunNames {
 public:
  explicit RunNames(unsigned worker) : worker_(worker) {}
  std::string next() { return std::to_string(worker_) + '-' + std::to_string(++last_); }

 private:
  unsigned worker_;
  std::atomic<std::uint64_t> last_{0};
};

/// The handler of one assignment. It runs the transfer of each key. The seed decides how it behaves.
class TransferHandler {
 public:
  /// `hold_locks_for`: longer than others wait for a lock. `adds_messages`: it adds messages to the outbox.
  /// `is_deployed`: it has the defects of bad deployments.
  TransferHandler(const Plan& plan, const Assignment& assignment, RunNames& names,
                  std::chrono::milliseconds hold_locks_for, Counters& met, bool adds_messages = false,
                  bool is_deployed = false)
      : plan_(plan),
        assignment_(assignment),
        names_(names),
        hold_locks_for_(hold_locks_for),
        met_(met),
        adds_messages_(adds_messages),
        is_deployed_(is_deployed),
        is_failure_planned_(assignment.arrivals.size()) {}

  void operator()(soci::session& sql, Delivery& delivery);

  /// Whether a run of this arrival's handler ended its transaction or threw on purpose.
  bool is_failure_planned(std::size_t index) const { return is_failure_planned_[index]; }

  // For a consumer that calls a different handler.
  const Plan& plan() const { return plan_; }
  RunNames& names() const { return names_; }

 private:
  Conduct conduct_for(const Arrival& arrival, const KeyPlan& key, int attempt) const;
  void behave(soci::session& sql, Delivery& delivery, const KeyPlan& key, Conduct conduct);
  void go_on(soci::session& sql, Delivery& delivery, const KeyPlan& key);
  void touch(soci::session& sql, const Transfer& transfer);
  void write(soci::session& sql, Delivery& delivery, const KeyPlan& key, bool descending,
             std::chrono::milliseconds pause);

  const Plan& plan_;
  const Assignment& assignment_;
  RunNames& names_;
  std::chrono::milliseconds hold_locks_for_;
  Counters& met_;
  bool adds_messages_;
  bool is_deployed_;
  std::vector<bool> is_failure_planned_;
};

/// Sends SIGKILL to this process.
[[noreturn]] void die();

/// If the assignment says so for the arrival of that index, it kills this process, now or soon.
void die_if_told(const Plan& plan, const Assignment& assignment, std::size_t index);

}  // namespace txinbox::torture
