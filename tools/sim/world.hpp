#pragma once

// One simulated night: processes of a service that consume the messages of a broker into a database, and what goes
// wrong.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/broker.hpp"
#include "sim/database/database.hpp"
#include "sim/plan.hpp"
#include "sim/threads.hpp"

namespace txinbox::sim {

/// What was counted.
struct Counts {
  std::uint64_t messages = 0;
  std::uint64_t deliveries = 0;
  std::uint64_t kills = 0;
  std::uint64_t restarts = 0;
};

class World {
 public:
  explicit World(const Plan&, const Migrated&);

  /// Runs the night, within `Threads::run`. Returns what went wrong; empty if nothing did.
  std::string run();

  /// The last things that happened before something went wrong: faults, and all that concerns the message.
  std::string story() const;

  const Counts& counts() const noexcept { return counts_; }

 private:
  /// What the handler of a message does.
  enum class Act {
    succeeds,
    fails_at_first,
    postpones,
    is_slow,
    goes_back,   ///< It rolls back to a savepoint of its own, and goes on.
    fails,       ///< Always.
    swallows,    ///< It goes on after a statement that fails.
    rolls_back,  ///< It rolls the transaction back, and returns.
    commits,     ///< It commits the transaction.
  };
  /// What an end of a message can be.
  static bool may_be_acknowledged(Act act) noexcept { return act < Act::fails || act == Act::swallows; }
  static bool may_be_dead_letter(Act act) noexcept { return act >= Act::fails; }

  struct Sent {
    Act act;
    int runs = 0;
    bool is_dead_letter = false;
    bool is_acknowledged = false;
  };

  struct Service {
    std::shared_ptr<Process> process;
    std::unique_ptr<std::stop_source> stop;
  };

  void publish();
  void start(Service&);
  void serve(const std::stop_token&);
  Act draw_act() const;
  void handle(::sqlite3*, Delivery&);
  void disturb();
  void end_of(const BrokerMessage&, const DeadLetter*);
  std::int64_t effects_of(const std::string& key);
  void check_end();
  void wrong(const std::string& key, const std::string& what);

  /// Adds a line to the story. `key` is empty if it concerns no message.
  void tell(const std::string& key, std::string text);

  const Plan plan_;
  Server server_;
  SimDatabase database_;
  Broker broker_;
  std::vector<Service> services_;
  std::map<std::string, Sent> sent_;
  std::string problem_;
  std::string key_of_problem_;
  Counts counts_;

  struct Line {
    SimTime time;
    std::string key;
    std::string text;
  };
  std::deque<Line> lines_;
};

}  // namespace txinbox::sim
