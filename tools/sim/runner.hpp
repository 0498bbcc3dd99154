#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/database/migrated.hpp"
#include "sim/plan.hpp"
#include "sim/simulation.hpp"

namespace txinbox::sim {

/// How a world has ended.
struct Report {
  std::string problem = {};  ///< Empty: nothing went wrong.
  std::string story = {};
  Counts counts = {};
  double simulated_seconds = 0;
};

/// Worlds that run at the same time, each in a process of its own: a killed service leaves its memory behind.
class Runner {
 public:
  explicit Runner(const Migrated& migrated) : migrated_(migrated) {}
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// Starts a world on one processor. Without a story it is faster.
  void start(const Plan&, int processor, bool records_story = false);
  std::size_t running() const noexcept { return children_.size(); }

  struct Ended {
    Plan plan;
    int processor;
    Report report;
  };

  /// Waits until a world has ended.
  Ended wait();

  /// Runs one world, and records its story.
  Report run(const Plan&);

  /// Takes kinds of faults and messages away, as long as the world fails in the same way.
  Plan shrink(Plan, const std::string& problem);

 private:
  struct Child {
    Plan plan;
    int processor;
    int process;
    int output;
    std::string text = {};
  };
  const Migrated& migrated_;
  std::vector<Child> children_;
};

}  // namespace txinbox::sim
