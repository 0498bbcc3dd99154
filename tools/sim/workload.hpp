#pragma once

// The work of services in a simulated world, and the conditions that must hold for it.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <txinbox/pool.hpp>

#include "sim/database/database.hpp"
#include "sim/plan.hpp"
#include "sim/story.hpp"

namespace txinbox::sim {

/// The state that all services of a world share.
struct World {
  World(const Plan& its_plan, const Migrated& migrated, bool is_recorded)
      : plan(its_plan), server(*its_plan.personality, migrated), database(server), story(is_recorded) {}

  const Plan plan;
  Server server;
  SimDatabase database;
  Story story;

  /// Whether nothing goes wrong any more.
  bool is_quiet = false;

  /// Whether also the handlers and receivers work that did not until now.
  bool is_healed = false;

  int failovers = 0;  ///< Also restored backups.
  SimTime last_failover{0};
  bool had_failover() const noexcept { return failovers > 0; }
  bool had_failover_since(SimTime time) const noexcept { return had_failover() && last_failover >= time; }

  /// The keys of which a failover has lost the effect. Others may know already that the effect was committed.
  std::set<std::string> lost = {};

  Pool open_pool(std::size_t connections) const {
    using namespace std::chrono_literals;
    return database.open_pool({.connections = connections, .acquire_timeout = 5s, .lock_timeout = 1s});
  }

  /// The statement with which the handler of a message takes effect.
  static std::string insert_effect(const std::string& key) {
    return fmt::format("INSERT INTO effect (business_key) VALUES ('{}')", key);
  }

  /// How many durable effects the key has.
  std::size_t effects_of(const std::string& key) { return server.count_durable("effect", {{"business_key", key}}); }

  /// Whether the message's row is durable, and says that the message is consumed.
  bool is_consumed(std::string consumer, std::string key) {
    return server.count_durable(
               "txinbox_consumed_message",
               {{"consumer", std::move(consumer)}, {"business_key", std::move(key)}, {"state", "consumed"}}) == 1;
  }
};

/// The work lasts so many times as long as the faults: much goes wrong only where nobody starts anew.
inline constexpr double share_of_work = 1.3;

/// How many of `count` things have to be done by now.
inline std::size_t due_by_now(const World& world, std::size_t count) {
  const double share =
      Threads::instance()->now() / (share_of_work * std::chrono::duration<double>(world.plan.faults_end));
  return std::min(count, 1 + static_cast<std::size_t>(share * static_cast<double>(count)));
}

/// The time by which `number` of `count` things have to be done.
inline SimTime due_time(const World& world, std::size_t number, std::size_t count) {
  const double share = static_cast<double>(number) / static_cast<double>(count);
  return std::chrono::ceil<SimTime>(share_of_work * share * std::chrono::duration<double>(world.plan.faults_end));
}

/// The time between two calls of `Workload::step`.
inline constexpr SimTime step_time = std::chrono::milliseconds(20);

/// Whether something that happens once in the mean time `every` happens within `time`. 0: never.
inline bool happens_within(SimTime time, SimTime every) {
  return every > SimTime(0) &&
         Threads::instance()->happens(static_cast<double>(time.count()) / static_cast<double>(every.count()));
}

/// Whether it happens in this step.
inline bool happens_in_step(SimTime every) { return happens_within(step_time, every); }

/// One kind of work. A world has some of them, which share its database.
class Workload {
 public:
  virtual ~Workload() = default;
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;

  /// The names of its services, such as "consumer 1".
  virtual std::vector<std::string> services() const = 0;

  /// Does the work of `main` of a service. It returns soon after the stop is requested.
  virtual void serve(std::size_t service, const std::stop_token& stop) = 0;

  /// Does the work beside the services. The world calls it every 20 ms.
  virtual void step() {}

  /// The work that is not done. Without `stuck`, it leaves out the work that waits until the world is healed.
  virtual std::optional<Waiting> waiting(bool stuck) = 0;

  /// How long an operator may need for all decisions for which this work waits, one after the other.
  virtual SimTime longest_decisions() const { return SimTime(0); }

  /// Checks what must hold at the end. It tells the story what does not.
  virtual void check_end() = 0;

  virtual std::uint64_t deliveries() const noexcept = 0;

 protected:
  explicit Workload(World& world) : world_(world) {}

  /// Adds "what 1", "what 2" and so on.
  static void add_names(std::vector<std::string>& names, std::string_view what, std::size_t count) {
    for (std::size_t i = 1; i <= count; ++i) names.push_back(fmt::format("{} {}", what, i));
  }

  World& world_;
};

}  // namespace txinbox::sim
