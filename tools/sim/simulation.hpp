#pragma once

// One simulated night: the services of some workloads, and what goes wrong.

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "sim/plan.hpp"
#include "sim/threads.hpp"
#include "sim/workload.hpp"

namespace txinbox::sim {

/// The counts of a simulation.
struct Counts {
  std::uint64_t deliveries = 0;
  std::uint64_t kills = 0;
  std::uint64_t ends = 0;      ///< Of services, by their stop tokens.
  std::uint64_t restarts = 0;  ///< Of the database, failovers too.

  /// The last random number. If anything else had happened, it would be another one.
  std::uint64_t fingerprint = 0;
};

class Simulation {
 public:
  Simulation(const Plan&, const Migrated&, bool records_story);

  /// Runs the night, within `Threads::run`. Returns what went wrong; empty if nothing did.
  std::string run();

  std::string story() const { return world_.story.text(); }
  const Counts& counts() const noexcept { return counts_; }

 private:
  struct Service {
    Workload& workload;
    std::size_t index;
    std::string name;
    std::shared_ptr<Process> process = {};
    std::shared_ptr<std::stop_source> stop = {};
    SimTime ends_by{0};    ///< It was told to stop, and must have ended at this time. 0: it was not told.
    SimTime starts_at{0};  ///< A service that was killed starts at this time.
  };

  void start(Service&);
  double any_drift() const;
  void step();
  void disturb(Service&);
  void disturb_database();
  void kill(Service&);
  void end(Service&);
  void stop(Service&);
  void set_clock(Service&);
  void refuse_changes();
  void lose_commits(std::string_view how, std::chrono::milliseconds most);
  void check_ended(const Service&);
  void end_faults();

  /// Runs until nothing waits. `stuck` is that of `Workload::waiting`.
  void run_until_done(bool stuck);
  std::optional<Waiting> waiting(bool stuck);

  World world_;
  std::vector<std::unique_ptr<Workload>> workloads_;
  std::vector<Service> services_;
  Counts counts_;
};

}  // namespace txinbox::sim
