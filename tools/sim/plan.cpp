#include "sim/plan.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <utility>

#include <fmt/format.h>

namespace txinbox::sim {

using namespace std::chrono_literals;

namespace {

/// The random numbers of a plan.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t end) { return random_() % end; }
  std::size_t number(std::size_t from, std::size_t to) { return from + below(to - from + 1); }
  bool is() { return below(2) == 0; }

  /// 0 in half of the worlds.
  double rate(double most) { return is() ? 0 : most * std::uniform_real_distribution<>()(random_); }

  /// 0 in half of the worlds, otherwise from the shortest time to eleven times this time.
  SimTime every(SimTime shortest) {
    return is() ? SimTime(0) : shortest + SimTime(random_() % static_cast<std::uint64_t>((10 * shortest).count()));
  }

 private:
  std::mt19937_64 random_;
};

/// A kind of fault. It has a rate, or a mean time between two faults, or it is there or not. Half of the worlds lack
/// it.
struct Fault {
  std::string_view name;
  double most = 0;  ///< The greatest rate of a world.
  double& (*rate)(Plan&) = nullptr;
  SimTime shortest{0};  ///< The shortest mean time of a world.
  SimTime& (*every)(Plan&) = nullptr;
  bool& (*is_there)(Plan&) = nullptr;

  void draw(Plan& plan, Draws& draws) const {
    if (rate != nullptr) rate(plan) = draws.rate(most);
    if (every != nullptr) every(plan) = draws.every(shortest);
    if (is_there != nullptr) is_there(plan) = draws.is();
  }
  void remove(Plan& plan) const {
    if (rate != nullptr) rate(plan) = 0;
    if (every != nullptr) every(plan) = SimTime(0);
    if (is_there != nullptr) is_there(plan) = false;
  }
};

constexpr Fault with_rate(std::string_view name, double most, double& (*rate)(Plan&)) {
  return {.name = name, .most = most, .rate = rate};
}

constexpr Fault once_in(std::string_view name, SimTime shortest, SimTime& (*every)(Plan&)) {
  return {.name = name, .shortest = shortest, .every = every};
}

/// A new kind comes last. Otherwise, all seeds would give other worlds.
constexpr auto faults = std::to_array<Fault>({
    with_rate("switches", 0.2, [](Plan& plan) -> double& { return plan.switch_rate; }),
    with_rate("handlers", 0.4, [](Plan& plan) -> double& { return plan.special_rate; }),
    with_rate("stuck", 0.05, [](Plan& plan) -> double& { return plan.stuck_rate; }),
    with_rate("resends", 0.3, [](Plan& plan) -> double& { return plan.resend_rate; }),
    once_in("kills", 500ms, [](Plan& plan) -> SimTime& { return plan.kill_every; }),
    with_rate("late-ends", 1, [](Plan& plan) -> double& { return plan.late_end_rate; }),
    once_in("stops", 1s, [](Plan& plan) -> SimTime& { return plan.stop_every; }),
    once_in("ends", 1s, [](Plan& plan) -> SimTime& { return plan.end_every; }),
    once_in("restarts", 3s, [](Plan& plan) -> SimTime& { return plan.restart_every; }),
    once_in("failovers", 10s, [](Plan& plan) -> SimTime& { return plan.failover_every; }),
    once_in("backups", 30s, [](Plan& plan) -> SimTime& { return plan.backup_every; }),
    once_in("jumps", 5s, [](Plan& plan) -> SimTime& { return plan.jump_every; }),
    once_in("moves", 200ms, [](Plan& plan) -> SimTime& { return plan.move_every; }),
    with_rate("lost-requests", 0.02, [](Plan& plan) -> double& { return plan.database.lose_request; }),
    with_rate("lost-replies", 0.02, [](Plan& plan) -> double& { return plan.database.lose_reply; }),
    with_rate("late-commits", 0.05, [](Plan& plan) -> double& { return plan.database.commit_late; }),
    with_rate("refusals", 0.02, [](Plan& plan) -> double& { return plan.database.refuse; }),
    with_rate("lost-acknowledgements", 0.2, [](Plan& plan) -> double& { return plan.broker.lose_acknowledgement; }),
    with_rate("refused-letters", 0.5, [](Plan& plan) -> double& { return plan.broker.refuse_dead_letter; }),
    with_rate("refused-messages", 0.3, [](Plan& plan) -> double& { return plan.receiver.refuse; }),
    with_rate("failed-calls", 0.3, [](Plan& plan) -> double& { return plan.receiver.fail; }),
    with_rate("postponed-messages", 0.5, [](Plan& plan) -> double& { return plan.receiver.postpone; }),
    with_rate("lost-confirmations", 0.2, [](Plan& plan) -> double& { return plan.receiver.lose_confirmation; }),
    with_rate("slow-calls", 0.05, [](Plan& plan) -> double& { return plan.receiver.be_slow; }),
    once_in("pauses", 5s, [](Plan& plan) -> SimTime& { return plan.pause_every; }),
    once_in("erasures", 1s, [](Plan& plan) -> SimTime& { return plan.erase_every; }),
    Fault{.name = "holds", .is_there = [](Plan& plan) -> bool& { return plan.holds_parked; }},
    once_in("clocks", 5s, [](Plan& plan) -> SimTime& { return plan.clock_every; }),
    once_in("killed-sessions", 500ms, [](Plan& plan) -> SimTime& { return plan.session_kill_every; }),
    with_rate("conflicts", 0.02, [](Plan& plan) -> double& { return plan.database.conflict; }),
    once_in("standbys", 3s, [](Plan& plan) -> SimTime& { return plan.standby_every; }),
    Fault{.name = "poolers", .is_there = [](Plan& plan) -> bool& { return plan.has_pooler; }},
    Fault{.name = "stale-sequences", .is_there = [](Plan& plan) -> bool& { return plan.makes_sequences_stale; }},
    once_in("forgotten-acknowledgements", 2s, [](Plan& plan) -> SimTime& { return plan.forget_every; }),
    once_in("topics", 10s, [](Plan& plan) -> SimTime& { return plan.recreate_every; }),
    Fault{.name = "delivery-limits", .is_there = [](Plan& plan) -> bool& { return plan.broker.has_delivery_limit; }},
    with_rate("drifts", 0.0005, [](Plan& plan) -> double& { return plan.drift; }),
    with_rate("drips", 0.05, [](Plan& plan) -> double& { return plan.receiver.drip; }),
});

constexpr auto names = [] {
  std::array<std::string_view, faults.size()> all;
  std::ranges::transform(faults, all.begin(), &Fault::name);
  return all;
}();

constexpr auto sizes = std::to_array<PlanSize>({
    {"messages", "messages for consumers", &Plan::messages, "consuming"},
    {"leased", "messages for consumers under a lease", &Plan::leased, "leasing"},
    {"produced", "transactions of producers", &Plan::produced, "publishing"},
    {"requests", "HTTP requests", &Plan::requests, "answering"},
    {"consumers", "services that consume in transactions", &Plan::consumers, "consuming"},
    {"leasers", "services that consume under leases", &Plan::leasers, "leasing"},
    {"relays", "services that publish the outbox", &Plan::relays, "publishing"},
    {"producers", "services that add messages to the outbox", &Plan::producers, "publishing"},
    {"servers", "services that answer HTTP requests", &Plan::servers, "answering"},
    {"workers", "workers of a service", &Plan::workers, ""},
    {"batch", "the most messages of a transaction", &Plan::batch, ""},
    {"lanes", "lanes of each broker", &Plan::lanes, ""},
});

}  // namespace

Plan Plan::of(std::uint64_t seed) {
  Draws draws(seed);
  Plan plan{.seed = seed, .personality = &personalities[draws.below(personalities.size())]};
  plan.lanes = draws.number(1, 8);
  plan.workers = draws.number(1, 3);
  plan.batch = draws.is() ? 1 : draws.number(2, 20);
  const std::size_t kinds = draws.number(1, 15);  // each bit is a kind of work
  if ((kinds & 1) != 0) {
    plan.consumers = draws.number(1, 4);
    plan.messages = draws.number(100, 800);
  }
  if ((kinds & 2) != 0) {
    plan.relays = draws.number(1, 3);
    plan.producers = plan.consumers == 0 || draws.is() ? draws.number(1, 3) : 0;
    plan.produced = plan.producers == 0 ? 0 : draws.number(50, 400);
  }
  if ((kinds & 4) != 0) {
    plan.leasers = draws.number(1, 3);
    plan.leased = draws.number(50, 300);
  }
  if ((kinds & 8) != 0) {
    plan.servers = draws.number(1, 3);
    plan.requests = draws.number(50, 300);
  }
  if (draws.is()) plan.max_in_flight = draws.number(1, 40);
  if (draws.is()) plan.max_waiting = draws.number(1, 40);
  plan.max_attempts = draws.is() ? 0 : 5;
  plan.orders_by_key = draws.is();
  plan.handlers = std::array{HandlerKind::one, HandlerKind::one, HandlerKind::set, HandlerKind::pair}[draws.below(4)];
  plan.broker_kind = std::array{BrokerKind::log, BrokerKind::fifo, BrokerKind::queue}[draws.below(3)];
  plan.has_heartbeat = draws.is();
  plan.counts_starts = draws.below(4) == 0;
  plan.waits_for_claims = draws.is();
  plan.has_recent_keys = draws.below(3) == 0;
  plan.answers_under_lease = draws.below(3) == 0;
  plan.breaker = std::array<std::size_t, 4>{0, 0, 3, 20}[draws.below(4)];
  plan.faults_end = std::chrono::seconds(draws.number(10, 120));
  plan.database.slowest = std::chrono::microseconds(draws.number(50, 5000));

  for (const Fault& each : faults) each.draw(plan, draws);
  plan.holds_parked = plan.holds_parked && plan.consumers > 0;
  if (plan.holds_parked) {  // it needs messages that are parked, and lanes
    plan.max_attempts = 5;
    if (plan.broker_kind == BrokerKind::queue) plan.broker_kind = BrokerKind::fifo;
  }
  // Then what is stuck may fill the room, and `RunOptions::max_waiting` says so.
  if (plan.broker_kind != BrokerKind::log && plan.stuck_rate > 0) plan.max_waiting = 0;
  // Of a lane that is stuck, `run` holds at least one message. Every second lane can be stuck.
  if (plan.max_waiting > 0 && plan.stuck_rate > 0) plan.max_waiting = std::max(plan.max_waiting, (plan.lanes + 1) / 2);
  return plan;
}

bool Plan::remove_fault(std::string_view name) {
  const auto found = std::ranges::find(faults, name, &Fault::name);
  if (found == faults.end()) return false;
  found->remove(*this);
  return true;
}

std::string Plan::text() const {
  std::string text(personality->name);
  for (const PlanSize& each : sizes) {
    if (this->*each.member != 0) text += fmt::format(", {} {}", each.name, this->*each.member);
  }
  const auto add = [&](bool is_set, const std::string& what) {
    if (is_set) text.append(", ").append(what);
  };
  add(max_in_flight > 0, fmt::format("max_in_flight {}", max_in_flight));
  add(max_waiting > 0, fmt::format("max_waiting {}", max_waiting));
  add(max_attempts > 0, fmt::format("max_attempts {}, breaker {}", max_attempts, breaker));
  add(holds_parked, "hold_parked");
  add(orders_by_key, "order by key");
  add(broker_kind == BrokerKind::fifo, "lanes that cannot be read again");
  add(broker_kind == BrokerKind::queue, "a queue");
  add(handlers == HandlerKind::set, "set handlers");
  add(handlers == HandlerKind::pair, "pairs of handlers");
  add(has_heartbeat, "heartbeat");
  add(counts_starts, "count_starts");
  add(consumers > 0 && waits_for_claims, "claim_wait");
  add(consumers > 0 && has_recent_keys, "recent_keys");
  add(servers > 0 && answers_under_lease, "answers under a lease");
  return text;
}

std::span<const std::string_view> fault_names() noexcept { return names; }

std::span<const PlanSize> plan_sizes() noexcept { return sizes; }

}  // namespace txinbox::sim
