#include "sim/simulation.hpp"

#include <exception>
#include <random>
#include <set>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "sim/workloads/answering.hpp"
#include "sim/workloads/consuming.hpp"
#include "sim/workloads/leasing.hpp"
#include "sim/workloads/publishing.hpp"

namespace txinbox::sim {

using namespace std::chrono_literals;

namespace {

std::chrono::milliseconds up_to(std::chrono::milliseconds longest) {
  return std::chrono::milliseconds(threads().random()() % static_cast<std::uint64_t>(longest.count()));
}

/// How long the world may need after the faults have ended, and after what was stuck is healed.
constexpr SimTime longest_recovery = 30min;

/// How long a service may need to end after its stop was requested.
constexpr SimTime longest_end = 60s;

}  // namespace

Simulation::Simulation(const Plan& plan, const Migrated& migrated, bool records_story)
    : world_(plan, migrated, records_story) {
  world_.server.faults = plan.database;
  world_.server.has_pooler = plan.has_pooler && !plan.personality->has_one_writer;  // a file has no pooler
  world_.server.makes_sequences_stale = plan.makes_sequences_stale;
  world_.server.store().drift = any_drift();
  Publishing* publishing = nullptr;
  if (plan.relays > 0) {
    auto made = std::make_unique<Publishing>(world_);
    publishing = made.get();
    workloads_.push_back(std::move(made));
  }
  if (plan.consumers > 0) workloads_.push_back(std::make_unique<Consuming>(world_, publishing));
  if (plan.leasers > 0) workloads_.push_back(std::make_unique<Leasing>(world_));
  if (plan.servers > 0) workloads_.push_back(std::make_unique<Answering>(world_));
  for (const auto& workload : workloads_) {
    std::size_t index = 0;
    for (std::string& name : workload->services()) services_.push_back({*workload, index++, std::move(name)});
  }
}

std::string Simulation::run() {
  for (Service& each : services_) start(each);
  while (threads().now() < world_.plan.faults_end && world_.story.problem().empty()) {
    step();
    for (Service& each : services_) disturb(each);
    disturb_database();
  }
  end_faults();
  run_until_done(false);
  world_.is_healed = true;
  run_until_done(true);
  for (const auto& each : workloads_) {
    if (world_.story.problem().empty()) each->check_end();
    counts_.deliveries += each->deliveries();
  }
  counts_.fingerprint = threads().random()();
  return world_.story.problem();
}

void Simulation::start(Service& service) {
  world_.story.tell("", "{} starts", service.name);
  service.stop = std::make_shared<std::stop_source>();
  service.ends_by = 0s;
  const double drift = any_drift();
  service.process = threads().start_process(service.name, [this, &service, token = service.stop->get_token()] {
    try {
      service.workload.serve(service.index, token);
      world_.story.tell("", "{} has ended", service.name);
    } catch (const std::exception& error) {  // the service ends, and is started again
      world_.story.tell("", "{} ends: {}", service.name, error.what());
    }
  });
  service.process->drift = drift;
}

double Simulation::any_drift() const {
  const double most = world_.plan.drift;
  return most > 0 ? std::uniform_real_distribution<>(-most, most)(threads().random()) : 0;
}

void Simulation::step() {
  threads().sleep_for(step_time);
  for (const auto& each : workloads_) each->step();
  for (Service& each : services_) {
    check_ended(each);
    const bool is_down = each.process->is_killed() || threads().has_ended(*each.process);
    if (is_down && threads().now() >= each.starts_at) start(each);
  }
}

void Simulation::check_ended(const Service& service) {
  if (service.ends_by == 0s || threads().has_ended(*service.process) || threads().now() < service.ends_by) return;
  world_.story.wrong("", "{} has not ended {} s after its stop was requested", service.name,
                     std::chrono::duration_cast<std::chrono::seconds>(longest_end).count());
}

void Simulation::disturb(Service& service) {
  const auto happens = [&](SimTime every) { return happens_in_step(every * static_cast<int>(services_.size())); };
  const Plan& plan = world_.plan;
  if (happens(plan.kill_every)) return kill(service);
  if (happens(plan.stop_every)) return stop(service);
  if (happens(plan.end_every) && service.ends_by == 0s) return end(service);
  if (happens(plan.clock_every)) set_clock(service);
}

/// Its steady clock stays right.
void Simulation::set_clock(Service& service) {
  service.process->clock_error = up_to(60s) - 30s;
  world_.story.tell("", "the clock of {} is wrong by {}", service.name,
                    std::chrono::duration_cast<std::chrono::milliseconds>(service.process->clock_error));
}

void Simulation::kill(Service& service) {
  threads().kill(*service.process);
  ++counts_.kills;
  service.ends_by = 0s;
  service.starts_at = threads().now() + (threads().any_of(2) == 0 ? SimTime(0) : SimTime(up_to(10s)));
  const SimTime later = threads().happens(world_.plan.late_end_rate) ? up_to(15s) : SimTime(0);
  world_.story.tell("", "{} is killed, and its sessions end {} later", service.name,
                    std::chrono::duration_cast<std::chrono::milliseconds>(later));
  if (later == 0s) return world_.server.end_sessions(*service.process);
  (void)threads().start_process("late end", [this, later, process = service.process] {
    threads().sleep_for(later);
    world_.server.end_sessions(*process);
  });
}

void Simulation::stop(Service& service) {
  const auto time = up_to(30s);
  world_.story.tell("", "{} stops for {}", service.name, time);
  threads().stop_until(*service.process, threads().now() + time);
  if (service.ends_by > 0s) service.ends_by += time;
}

/// As SIGTERM does. A thread of its own requests the stop, because a thread of the service may be in its way.
void Simulation::end(Service& service) {
  world_.story.tell("", "{} is told to end", service.name);
  ++counts_.ends;
  service.ends_by = std::max(threads().now(), threads().stopped_until(*service.process)) + longest_end;
  (void)threads().start_process("end", [stop = service.stop] { stop->request_stop(); });
}

void Simulation::disturb_database() {
  const Plan& plan = world_.plan;
  Server& server = world_.server;
  if (happens_in_step(plan.restart_every)) {
    const auto time = up_to(5s);
    world_.story.tell("", "the database is away for {}", time);
    server.restart(threads().now() + time);
    ++counts_.restarts;
  }
  if (happens_in_step(plan.session_kill_every)) {
    const std::string client = server.kill_any_session();
    if (!client.empty()) world_.story.tell("", "an administrator kills a session of {}", client);
  }
  if (!plan.personality->error.read_only.empty() && happens_in_step(plan.standby_every)) refuse_changes();
  if (happens_in_step(plan.failover_every)) lose_commits("a standby takes over", 2s);
  if (happens_in_step(plan.backup_every)) lose_commits("a backup is restored", longest_loss);
  if (happens_in_step(plan.jump_every)) {
    server.store().clock_error = up_to(60s) - 30s;
    world_.story.tell("", "the clock of the database is wrong by {}",
                      std::chrono::duration_cast<std::chrono::milliseconds>(server.store().clock_error));
  }
}

void Simulation::refuse_changes() {
  const auto time = up_to(5s);
  if (threads().any_of(2) == 0) {
    world_.story.tell("", "for {}, new connections lead to a standby", time);
    world_.server.lead_to_standby(threads().now() + time);
  } else {
    world_.story.tell("", "for {}, the server is read-only", time);
    world_.server.become_read_only(threads().now() + time);
  }
}

void Simulation::lose_commits(std::string_view how, std::chrono::milliseconds most) {
  const auto lost = up_to(most);
  const auto time = up_to(5s);
  world_.story.tell("", "{} in {}, without the last {}", how, time, lost);
  ++counts_.restarts;
  ++world_.failovers;
  world_.last_failover = threads().now();
  for (const std::string& key : world_.server.fail_over(threads().now() + time, lost)) {
    world_.story.tell(key, "the effect of {} is lost", key);
    world_.lost.insert(key);
  }
}

void Simulation::end_faults() {
  world_.is_quiet = true;
  world_.server.lead_to_standby(0s);
  world_.server.become_read_only(0s);
  world_.server.faults = {.slowest = world_.plan.database.slowest};
  world_.story.tell("", "the faults end");
}

std::optional<Waiting> Simulation::waiting(bool stuck) {
  for (const auto& each : workloads_) {
    if (auto waiting = each->waiting(stuck)) return waiting;
  }
  return std::nullopt;
}

void Simulation::run_until_done(bool stuck) {
  constexpr int steps_of_check = 10;
  SimTime longest = longest_recovery;
  for (const auto& each : workloads_) longest += each->longest_decisions();
  const SimTime until = threads().now() + longest;
  while (world_.story.problem().empty()) {
    for (int i = 0; i < steps_of_check; ++i) step();
    const auto left = waiting(stuck);
    if (!left) return;
    if (threads().now() < until) continue;
    world_.story.wrong(left->key, "stands still: {} {} not done after {}", left->text,
                       stuck ? "although all is healed, it is" : "beside what is stuck, it is",
                       std::chrono::duration_cast<std::chrono::minutes>(longest));
  }
}

}  // namespace txinbox::sim
