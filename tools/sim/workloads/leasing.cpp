#include "sim/workloads/leasing.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <txinbox/txinbox.hpp>

namespace txinbox::sim {

using namespace std::chrono_literals;

namespace {

constexpr std::chrono::milliseconds lease_time = 3s;

}  // namespace

Leasing::Leasing(World& world) : Workload(world), feed_(world, "leased", world.plan.leased) {
  feed_.broker().on_end = [this](const BrokerMessage& message, const DeadLetter* letter) { end_of(message, letter); };
}

std::vector<std::string> Leasing::services() const {
  std::vector<std::string> names;
  add_names(names, "leaser", world_.plan.leasers);
  return names;
}

void Leasing::step() {
  feed_.step([this](const Placed& placed) {
    const Act act = sent_[placed.key].act = draw_act(placed.lane);
    return act == Act::is_stuck;
  });
}

Leasing::Act Leasing::draw_act(std::size_t lane) const {
  const Plan& plan = world_.plan;
  if (Feed::may_be_stuck(lane) && threads().happens(plan.stuck_rate)) return Act::is_stuck;
  if (!threads().happens(plan.special_rate)) return Act::succeeds;
  const Act act =
      std::array{Act::fails_at_first, Act::postpones, Act::is_slow, Act::renews, Act::fails}[threads().any_of(5)];
  const bool parks = plan.max_attempts > 0 && plan.breaker == 0;  // with a breaker, only if others are consumed
  return act == Act::fails && !parks ? Act::fails_at_first : act;
}

void Leasing::serve(std::size_t, const std::stop_token& stop) {
  const Plan& plan = world_.plan;
  Pool pool = world_.open_pool(plan.workers + 1);
  LeaseConsumer consumer(pool, "lease", {.length = lease_time, .heartbeat = plan.has_heartbeat ? lease_time / 3 : 0ms},
                         {.stop = stop, .max_attempts = plan.max_attempts, .count_starts = plan.counts_starts});
  const std::unique_ptr<SimSource> source = feed_.broker().connect();
  RunOptions options{.batch = 1,
                     .workers = plan.workers,
                     .max_in_flight = plan.max_in_flight,
                     .max_backoff = 2s,
                     .breaker = breaker_of(plan)};
  if (plan.max_waiting > 0) options.max_waiting = plan.max_waiting;
  watch_held(world_, *source, options);
  (void)txinbox::run(
      *source, consumer, [](const Incoming& in) { return Message{.business_key = std::string(in.body)}; },
      [this](Lease& lease) { handle(lease); }, options);
}

void Leasing::handle(Lease& lease) {
  const std::string key = lease.message().business_key;
  Sent& sent = sent_.at(key);
  ++sent.runs;
  world_.story.tell(key, "{} runs {} for the {}. time, with the fence {}", threads().current_process().name(), key,
                    sent.runs, lease.fence());
  const LeaseRun run(world_, key, sent.leases, lease);
  const bool is_first = sent.runs == 1;
  threads().sleep_for(std::chrono::milliseconds(threads().any_of(20)));
  if (sent.act == Act::is_slow && is_first) threads().sleep_for(2 * lease_time);
  if (sent.act == Act::renews) {
    for (int i = 0; i < 4; ++i) {
      threads().sleep_for(lease_time / 2);
      lease.renew();
    }
  }
  if (sent.act == Act::fails || (sent.act == Act::fails_at_first && is_first)) {
    throw std::runtime_error("the handler fails");
  }
  const bool waits = (sent.act == Act::postpones && is_first) || (sent.act == Act::is_stuck && !world_.is_healed);
  if (waits) throw RetryLater(1s, "the handler waits for something");
  ++sent.successes;
}

std::string Leasing::state_of(const std::string& key) {
  const auto rows = world_.server.query(
      fmt::format("SELECT state FROM txinbox_consumed_message WHERE consumer = 'lease' AND business_key = '{}'", key));
  return rows.empty() ? "" : rows.front().front().bytes;
}

void Leasing::end_of(const BrokerMessage& message, const DeadLetter* letter) {
  const std::string& key = message.body;
  Story& story = world_.story;
  Sent& sent = sent_.at(key);
  const std::string state = state_of(key);
  if (letter != nullptr) {
    story.tell(key, "the broker has the dead letter of {}: {}", message.id, letter->reason);
    sent.is_dead_letter = true;
    if (sent.act != Act::fails) story.wrong(key, "is a dead letter although its handler succeeds");
    if (state != "parked" && !world_.had_failover_since(sent.leases.since))
      story.wrong(key, "is a dead letter, and its row is '{}'", state);
    return;
  }
  story.tell(key, "{} is acknowledged", message.id);
  if (sent.is_dead_letter) return;
  sent.leases.set_done();
  if (sent.successes == 0) story.wrong(key, "is acknowledged although its handler has never returned");
  if (!world_.had_failover_since(sent.leases.since) && !world_.is_consumed("lease", key)) {
    story.wrong(key, "is acknowledged, and no durable row says so; its row is '{}'", state);
  }
}

void Leasing::check_end() {
  for (const auto& [key, sent] : sent_) {
    const std::string state = state_of(key);
    const std::string_view right = sent.is_dead_letter ? "parked" : "consumed";
    if (state != right && !world_.had_failover_since(sent.leases.since))
      world_.story.wrong(key, "has a row '{}' at the end", state);
  }
}

}  // namespace txinbox::sim
