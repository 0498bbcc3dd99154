#pragma once

// Checks that a message's handlers run under its lease one at a time.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
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
  std::vector<Run> running = {};
  std::int64_t fence = 0;  ///< The highest one until now.
  bool is_done = false;    ///< Somebody was told that the message is done. No handler may begin any more.
};

/// A run of a handler, as long as it lives.
class LeaseRun {
 public:
  /// Tells the story if another handler has the lease by its own clock, or if the message is done.
  LeaseRun(World& world, const std::string& key, LeaseRuns& runs, Lease& lease) : runs_(runs), lease_(lease) {
    if (!is_weak(world)) check(world, key);
    runs_.fence = std::max(runs_.fence, lease.fence());
    runs_.running.push_back({Threads::instance()->current_process_ptr(), &lease});
  }
  ~LeaseRun() {
    std::erase_if(runs_.running, [this](const LeaseRuns::Run& each) { return each.lease == &lease_; });
  }
  LeaseRun(const LeaseRun&) = delete;
  LeaseRun& operator=(const LeaseRun&) = delete;

  /// Whether the server may have forgotten leases, or ended them early.
  static bool is_weak(const World& world) { return world.had_failover || world.plan.jump_every > SimTime(0); }

 private:
  void check(World& world, const std::string& key) const {
    Story& story = world.story;
    if (runs_.is_done) story.wrong(key, "runs again although it is done");
    if (lease_.fence() <= runs_.fence) {
      story.wrong(key, "has the fence {} after the fence {}", lease_.fence(), runs_.fence);
    }
    for (const LeaseRuns::Run& each : runs_.running) {
      if (!each.process->is_killed() && each.lease->remaining() > std::chrono::milliseconds(0)) {
        story.wrong(key, "runs although {} has its lease", each.process->name());
      }
    }
  }

  LeaseRuns& runs_;
  Lease& lease_;
};

}  // namespace txinbox::sim
