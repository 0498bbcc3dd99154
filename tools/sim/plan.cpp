#include "sim/plan.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <utility>

#include <fmt/format.h>

namespace txinbox::sim {

using namespace std::chrono_literals;

namespace {

using Remove = void (*)(Plan&);

constexpr auto faults = std::to_array<std::pair<std::string_view, Remove>>({
    {"kills", [](Plan& plan) { plan.kill_every = {}; }},
    {"late-ends", [](Plan& plan) { plan.late_end_rate = 0; }},
    {"stops", [](Plan& plan) { plan.stop_every = {}; }},
    {"ends", [](Plan& plan) { plan.end_every = {}; }},
    {"restarts", [](Plan& plan) { plan.restart_every = {}; }},
    {"failovers", [](Plan& plan) { plan.failover_every = {}; }},
    {"backups", [](Plan& plan) { plan.backup_every = {}; }},
    {"jumps", [](Plan& plan) { plan.jump_every = {}; }},
    {"moves", [](Plan& plan) { plan.move_every = {}; }},
    {"resends", [](Plan& plan) { plan.resend_rate = 0; }},
    {"handlers", [](Plan& plan) { plan.special_rate = 0; }},
    {"stuck", [](Plan& plan) { plan.stuck_rate = 0; }},
    {"lost-requests", [](Plan& plan) { plan.database.lose_request = 0; }},
    {"lost-replies", [](Plan& plan) { plan.database.lose_reply = 0; }},
    {"late-commits", [](Plan& plan) { plan.database.commit_late = 0; }},
    {"refusals", [](Plan& plan) { plan.database.refuse = 0; }},
    {"lost-acknowledgements", [](Plan& plan) { plan.broker.lose_acknowledgement = 0; }},
    {"refused-letters", [](Plan& plan) { plan.broker.refuse_dead_letter = 0; }},
    {"refused-messages", [](Plan& plan) { plan.receiver.refuse = 0; }},
    {"failed-calls", [](Plan& plan) { plan.receiver.fail = 0; }},
    {"postponed-messages", [](Plan& plan) { plan.receiver.postpone = 0; }},
    {"lost-confirmations", [](Plan& plan) { plan.receiver.lose_confirmation = 0; }},
    {"slow-calls", [](Plan& plan) { plan.receiver.be_slow = 0; }},
    {"switches", [](Plan& plan) { plan.switch_rate = 0; }},
    {"holds", [](Plan& plan) { plan.holds_parked = false; }},
    {"pauses", [](Plan& plan) { plan.pause_every = {}; }},
    {"erasures", [](Plan& plan) { plan.erase_every = {}; }},
});

constexpr auto names = [] {
  std::array<std::string_view, faults.size()> all;
  std::ranges::transform(faults, all.begin(), &std::pair<std::string_view, Remove>::first);
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
  std::mt19937_64 random(seed);
  const auto number = [&](std::size_t from, std::size_t to) { return from + random() % (to - from + 1); };
  const auto is = [&] { return random() % 2 == 0; };
  const auto share = [&] { return std::uniform_real_distribution<>()(random); };
  const auto rate = [&](double most) { return is() ? 0 : most * share(); };
  const auto every = [&](SimTime shortest) {
    return is() ? SimTime(0) : shortest + SimTime(random() % static_cast<std::uint64_t>((10 * shortest).count()));
  };
  Plan plan{.seed = seed, .personality = &personalities[random() % personalities.size()]};
  plan.lanes = number(1, 8);
  plan.workers = number(1, 3);
  plan.batch = is() ? 1 : number(2, 20);
  const std::size_t kinds = number(1, 15);  // each bit is a kind of work
  if ((kinds & 1) != 0) {
    plan.consumers = number(1, 4);
    plan.messages = number(100, 800);
  }
  if ((kinds & 2) != 0) {
    plan.relays = number(1, 3);
    plan.producers = plan.consumers == 0 || is() ? number(1, 3) : 0;
    plan.produced = plan.producers == 0 ? 0 : number(50, 400);
  }
  if ((kinds & 4) != 0) {
    plan.leasers = number(1, 3);
    plan.leased = number(50, 300);
  }
  if ((kinds & 8) != 0) {
    plan.servers = number(1, 3);
    plan.requests = number(50, 300);
  }
  if (is()) plan.max_in_flight = number(1, 40);
  if (is()) plan.max_waiting = number(1, 40);
  plan.max_attempts = is() ? 0 : 5;
  plan.orders_by_key = is();
  plan.handlers = std::array{HandlerKind::one, HandlerKind::one, HandlerKind::set, HandlerKind::pair}[random() % 4];
  plan.broker_kind = std::array{BrokerKind::log, BrokerKind::fifo, BrokerKind::queue}[random() % 3];
  plan.has_heartbeat = is();
  plan.counts_starts = random() % 4 == 0;
  plan.waits_for_claims = is();
  plan.has_recent_keys = random() % 3 == 0;
  plan.answers_under_lease = random() % 3 == 0;
  plan.breaker = std::array<std::size_t, 4>{0, 0, 3, 20}[random() % 4];

  plan.faults_end = std::chrono::seconds(number(10, 120));
  plan.switch_rate = rate(0.2);
  plan.special_rate = rate(0.4);
  plan.stuck_rate = rate(0.05);
  plan.resend_rate = rate(0.3);
  plan.kill_every = every(500ms);
  plan.late_end_rate = rate(1);
  plan.stop_every = every(1s);
  plan.end_every = every(1s);
  plan.restart_every = every(3s);
  plan.failover_every = every(10s);
  plan.backup_every = every(30s);
  plan.jump_every = every(5s);
  plan.move_every = every(200ms);
  plan.database = {.lose_request = rate(0.02),
                   .lose_reply = rate(0.02),
                   .commit_late = rate(0.05),
                   .refuse = rate(0.02),
                   .slowest = std::chrono::microseconds(number(50, 5000))};
  plan.broker = {.lose_acknowledgement = rate(0.2), .refuse_dead_letter = rate(0.5)};
  // Then what is stuck may fill the room, and `RunOptions::max_waiting` says so.
  if (plan.broker_kind != BrokerKind::log && plan.stuck_rate > 0) plan.max_waiting = 0;
  // Of a lane that is stuck, `run` holds at least one message. Every second lane can be stuck.
  if (plan.max_waiting > 0 && plan.stuck_rate > 0) plan.max_waiting = std::max(plan.max_waiting, (plan.lanes + 1) / 2);
  plan.receiver = {.refuse = rate(0.3),
                   .fail = rate(0.3),
                   .postpone = rate(0.5),
                   .lose_confirmation = rate(0.2),
                   .be_slow = rate(0.05)};
  plan.holds_parked = is() && plan.consumers > 0 && plan.max_attempts > 0 && plan.broker_kind != BrokerKind::queue;
  plan.pause_every = every(5s);
  plan.erase_every = every(1s);
  return plan;
}

bool Plan::remove_fault(std::string_view name) {
  const auto found = std::ranges::find(faults, name, &std::pair<std::string_view, Remove>::first);
  if (found == faults.end()) return false;
  found->second(*this);
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
