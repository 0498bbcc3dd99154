#include "sim/workloads/operator.hpp"

#include <chrono>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <txinbox/failed_messages.hpp>

#include "base/interruptible_sleep.hpp"

namespace txinbox::sim {

using namespace std::chrono_literals;

namespace {

const OperatorAction by{.actor = "operator", .reason = "the simulation"};

/// How long the operator needs for a decision.
SimTime time_to_decide() { return 2s + std::chrono::milliseconds(threads().any_of(8000)); }

}  // namespace

Operator::Operator(World& world, std::string consumer, std::function<bool(const std::string&)> is_held)
    : world_(world), consumer_(std::move(consumer)), is_held_(std::move(is_held)) {}

void Operator::work(const std::stop_token& stop) {
  while (detail::sleep_for(1s, stop)) {
    try {
      decide();
    } catch (const std::exception& error) {
      world_.story.tell("", "the operator gets {}", error.what());
    }
  }
}

const Decision& Operator::decision(const std::string& key) const {
  static const Decision none;
  const auto found = decisions_.find(key);
  return found == decisions_.end() ? none : found->second;
}

/// The operator looks for messages that are held, and decides about those that are due.
void Operator::decide() {
  std::map<std::string, bool> due;
  std::set<std::string> parked;
  for (const Values& row : world_.server.query(
           fmt::format("SELECT business_key, state FROM txinbox_consumed_message WHERE consumer = '{}' AND state IN "
                       "('parked', 'torn')",
                       consumer_))) {
    const std::string& key = row[0].bytes;
    if (!is_held_(key)) continue;
    parked.insert(key);
    // The decision about a message never changes. A failover can undo it, and then it is made again.
    const auto [found, is_new] = decisions_.try_emplace(key);
    Decision& decision = found->second;
    if (is_new) decision.discards = threads().happens(0.4);
    if (decision.due == 0s) decision.due = threads().now() + time_to_decide();
    if (decision.due <= threads().now()) due.emplace(key, row[1].bytes == "torn");
  }
  for (auto& [key, decision] : decisions_) {
    if (!parked.contains(key)) decision.due = 0s;
  }
  if (due.empty()) return;
  const ConnectionRef connection = world_.database.connect_caller();
  for (const auto& [key, is_torn] : due) decide(connection, key, is_torn, decisions_[key]);
}

void Operator::decide(const ConnectionRef& connection, const std::string& key, bool is_torn, Decision& decision) {
  const FailedFilter filter{
      .consumer = consumer_, .business_key = key, .state = is_torn ? FailedState::torn : FailedState::parked};
  if (is_torn || decision.discards) {
    decision.is_discarded = true;
    world_.story.tell(key, "the operator discards {}", key);
    if (discard_failed(connection, filter, by) > 0) decision.is_discard_done = true;
  } else {
    decision.is_repaired = true;
    world_.story.tell(key, "the operator lets {} run again", key);
    (void)retry_failed(connection, filter, by);
  }
  decision.due = 0s;
  world_.story.tell(key, "the operator has decided about {}", key);
}

}  // namespace txinbox::sim
