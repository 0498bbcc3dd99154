#pragma once

// Checks that a message's handlers run under its lease one at a time.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <txinbox/lease_consumer.hpp>

#include "sim/workload.hpp"

namespace txinbox::sim {

/// The runs of the handlers of one message.
struct LeaseRuns {
  struct Run {
    std::shared_ptr<Process> process;
    Lease* lease;
  };
  SimTime since = threads().now();  ///< When the message was sent first.
  std::vector<Run> running = {};
  std::set<std::int64_t> fences = {};        ///< Of all handlers that have begun.
  std::optional<std::int64_t> done_at = {};  ///< The highest fence when somebody was told that the message is done.

  std::int64_t highest() const noexcept { return fences.empty() ? 0 : *fences.rbegin(); }

  void set_done() {
    if (!done_at) done_at = highest();
  }
};

/// A run of a handler, as long as it lives.
class LeaseRun {
 public:
  /// Tells the story if another handler has the lease by its own clock, or if the message is done.
  LeaseRun(World& world, const std::string& key, LeaseRuns& runs, Lease& lease) : runs_(runs), lease_(lease) {
    if (!world.had_failover_since(runs.since)) check(world, key);
    runs_.fences.insert(lease.fence());
    runs_.running.push_back({Threads::instance()->current_process_ptr(), &lease});
  }
  ~LeaseRun() {
    std::erase_if(runs_.running, [this](const LeaseRuns::Run& each) { return each.lease == &lease_; });
  }
  LeaseRun(const LeaseRun&) = delete;
  LeaseRun& operator=(const LeaseRun&) = delete;

  /// Whether leases may end early, because the clock of the database jumps. Then a handler can begin with its lease
  /// when another one has taken the lease over.
  static bool may_overlap(const World& world) { return world.plan.jump_every > SimTime(0); }

 private:
  void check(World& world, const std::string& key) const {
    Story& story = world.story;
    const std::int64_t fence = lease_.fence();
    const bool overlaps = may_overlap(world);
    if (runs_.done_at && (!overlaps || fence > *runs_.done_at)) story.wrong(key, "runs again although it is done");
    if (overlaps ? runs_.fences.contains(fence) : fence <= runs_.highest()) {
      story.wrong(key, "has the fence {} after the fence {}", fence, runs_.highest());
    }
    if (overlaps) return;
    // Of leases of 3 s, if one clock is too slow and the other one too fast. The database's clock has microseconds.
    const SimTime tolerance = world.plan.drift > 0 ? std::chrono::milliseconds(4) : std::chrono::microseconds(1);
    for (const LeaseRuns::Run& each : runs_.running) {
      const SimTime end = each.process->time_when_shown(each.lease->expires_at().time_since_epoch() - uptime);
      if (!each.process->is_killed() && end > threads().now() + tolerance) {
        story.wrong(key, "runs although {} has its lease", each.process->name());
      }
    }
  }

  LeaseRuns& runs_;
  Lease& lease_;
};

}  // namespace txinbox::sim
