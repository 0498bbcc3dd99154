#pragma once

// Services that consume the messages of a broker with `LeaseConsumer` and `run`.

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <txinbox/lease_consumer.hpp>

#include "sim/workload.hpp"
#include "sim/workloads/feed.hpp"
#include "sim/workloads/lease_runs.hpp"

namespace txinbox::sim {

class Leasing final : public Workload {
 public:
  explicit Leasing(World&);

  std::vector<std::string> services() const override;
  void serve(std::size_t service, const std::stop_token&) override;
  void step() override;
  std::optional<Waiting> waiting(bool stuck) override { return feed_.waiting(stuck); }
  void check_end() override;
  std::uint64_t deliveries() const noexcept override { return feed_.broker().deliveries(); }

 private:
  /// The behaviour of the handler of a message.
  enum class Act {
    succeeds,
    fails_at_first,
    postpones,
    is_slow,   ///< It takes longer than the lease, the first time.
    renews,    ///< It takes longer than the lease, and renews it.
    is_stuck,  ///< It asks for a later time until the world is healed.
    fails,     ///< Always.
  };

  struct Sent {
    Act act;
    int runs = 0;
    int successes = 0;  ///< How often the handler has returned.
    LeaseRuns leases = {};
    bool is_dead_letter = false;
  };

  Act draw_act(std::size_t lane) const;
  void handle(Lease&);
  void end_of(const BrokerMessage&, const DeadLetter*);
  std::string state_of(const std::string& key);

  Feed feed_;
  std::map<std::string, Sent> sent_;
};

}  // namespace txinbox::sim
