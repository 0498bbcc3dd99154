#include "torture/storm.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <limits>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>

#include "console/output.hpp"
#include "torture/child.hpp"

namespace txinbox::torture {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// The outstanding copies for each thread. There are enough for its batches, and so few that copies of one key run at
// the same time.
constexpr std::size_t window_of_thread = 24;

constexpr std::size_t largest_batch = 20;
constexpr int tick_ms = 10;
constexpr milliseconds last_wait{10'000};
constexpr std::size_t most_crashes = 10;
constexpr std::size_t most_reported = 20;

}  // namespace

Storm::Storm(const StormOptions& options, const std::string& url, const std::string& name, cli::StopSignals& signals)
    : options_(options),
      url_(url),
      name_(name),
      signals_(signals),
      plan_(options.seed, options.shards),
      dead_letters_(plan_),
      broker_(plan_, window_of_thread * options.processes * options.threads,
              options.operators == 0 ? nullptr : &dead_letters_),
      dice_(options.seed, {5}),
      start_(steady_clock::now()),
      last_acknowledged_(start_),
      next_kill_(start_ + options.kill_every),
      command_(options.command, options.command_every, start_),
      workers_(options.processes),
      relays_(options.sink.empty() ? 0 : options.relays),
      operators_(options.operators, broker_, dead_letters_, start_) {}

Storm::End Storm::run() {
  End end = End::done;
  while (true) {
    const Time now = steady_clock::now();
    const bool storming = is_storming(now);
    if (!storming && broker_.is_done() && has_drained(now)) break;
    if (now - last_acknowledged_ > options_.grace || wrong_.size() >= most_crashes) end = End::gave_up;
    if (!fatal_.empty()) end = End::fatal;
    if (signals_.stopped()) end = End::stopped;
    if (end != End::done) break;
    step(now);
  }
  progress_.erase();
  figures_.elapsed = steady_clock::now() - start_;
  end_workers();
  await_command();
  figures_.commands_run = command_.runs();
  figures_.commands_failed = command_.failures();
  figures_.operators_killed = operators_.killed();
  figures_.repairs = operators_.repairs();
  return end;
}

bool Storm::is_storming(Time now) const {
  if (options_.keys && broker_.keys().size() >= *options_.keys && broker_.is_done()) return false;
  if (now < start_ + options_.duration) return true;
  return command_.runs() < options_.command_at_least && now < start_ + options_.duration + options_.grace;
}

void Storm::step(Time now) {
  const bool storming = is_storming(now);
  start_missing(workers_, "");
  start_missing(relays_, options_.sink);
  start_missing_operators();
  command_.attend(now, storming);
  if (storming) {
    send(now);
    kill_worker(now);
    if (options_.keys && broker_.keys().size() >= *options_.keys) broker_.close();
  } else {
    broker_.close();
    next_death_ = Death::never;
    operators_.end_kills();
  }
  operators_.repair(now, storming, options_.keys);
  hand_out(now);
  wait();
  const Time then = steady_clock::now();
  for (auto* processes : {&workers_, &relays_}) {
    for (auto& process : *processes) receive_replies(*process, then);
  }
  operators_.answer();
  if (!operators_.fatal().empty()) fatal_ = operators_.fatal();
  if (broker_.is_done()) last_acknowledged_ = then;  // nothing is outstanding
  draw(then);
}

void Storm::send(Time now) {
  if (!operators_.has_room()) return;
  auto keys = std::numeric_limits<std::uint64_t>::max();
  if (options_.rate != 0) {
    const std::chrono::duration<double> elapsed = now - start_;
    keys = static_cast<std::uint64_t>(elapsed.count() * static_cast<double>(options_.rate)) + 1;
  }
  broker_.send(std::min(keys, options_.keys.value_or(keys)));
}

std::vector<Imbalance> Storm::wrong() const {
  auto all = wrong_;
  for (const auto* more : {&operators_.wrong(), &dead_letters_.wrong()})
    all.insert(all.end(), more->begin(), more->end());
  return all;
}

/// Whether the relays and the operators have published everything. It gives up after the grace period. Then the checker
/// finds the messages that are left.
bool Storm::has_drained(Time now) {
  if (relays_.empty() && operators_.is_none()) return true;
  if (!drains_since_) drains_since_ = now;
  if (now - *drains_since_ > options_.grace) return true;
  return dead_letters_.size() == 0 && options_.is_drained();
}

WorkerOptions Storm::worker_options() const {
  return {.number = last_worker_,
          .seed = options_.seed,
          .shards = options_.shards,
          .threads = options_.threads,
          .subject = options_.subject,
          .name = name_};
}

void Storm::start_missing_operators() {
  WorkerOptions options = worker_options();
  options.is_operator = true;
  operators_.start_missing(options, url_);
  last_worker_ = options.number;
}

void Storm::start_missing(Processes& processes, const std::string& sink) {
  for (std::size_t i = 0; i < processes.size(); ++i) {
    auto& worker = processes[i];
    if (worker && !worker->has_ended()) continue;
    ++last_worker_;
    WorkerOptions options = worker_options();
    options.sink = sink;
    const auto& relay_urls = options_.relay_urls;
    worker = std::make_unique<WorkerProcess>(options, sink.empty() ? url_ : relay_urls[i % relay_urls.size()]);
  }
}

void Storm::receive_replies(WorkerProcess& worker, Time now) {
  for (const auto& received : worker.receive_replies()) take_reply(received, now);
  if (worker.has_ended()) remove_ended_worker(worker);
}

void Storm::take_reply(const WorkerProcess::ReceivedReply& received, Time now) {
  const Reply& reply = received.reply;
  if (!reply.fatal.empty()) fatal_ = reply.fatal;
  figures_.met += reply.met;
  const auto before = broker_.tally().acknowledged;
  for (std::size_t i = 0; i < reply.answers.size(); ++i) {
    const Answer& answer = reply.answers[i];
    broker_.answered(received.assignment.arrivals[i], answer, now);
    if (answer.action == Action::stop) fatal_ = answer.why;
    if (answer.failure == Failure::unexpected && reported_.size() < most_reported &&
        reported_.insert(answer.why).second) {
      progress_.message("txinbox-torture: an error in a worker: " + answer.why);
    }
  }
  if (broker_.tally().acknowledged == before) return;
  figures_.longest_outage = std::max<std::chrono::duration<double>>(figures_.longest_outage, now - last_acknowledged_);
  last_acknowledged_ = now;
}

/// Its deliveries without an answer are delivered again, as a broker does after a client has disconnected.
void Storm::remove_ended_worker(WorkerProcess& worker) {
  for (const auto& [number, assignment] : worker.unanswered()) {
    for (const Arrival& arrival : assignment.arrivals) broker_.lost(arrival);
  }
  const int status = worker.reap();
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
    ++(worker.is_relay() ? figures_.relays_killed : figures_.workers_killed);
  } else if (fatal_.empty() && !(is_ending_ && status == 0)) {
    wrong_.push_back({fmt::format("worker {}", worker.number()), "ended by itself", "runs on", describe_end(status)});
  }
}

void Storm::kill_worker(Time now) {
  if (options_.kill_every == milliseconds(0) || now < next_kill_) return;
  next_kill_ = now + options_.kill_every / 2 +
               milliseconds(dice_.below(static_cast<std::uint64_t>(options_.kill_every.count()) + 1));
  if (!relays_.empty() && dice_.chance(5'000)) {
    relays_[dice_.below(relays_.size())]->kill();
    return;
  }
  if (!operators_.is_none() && dice_.chance(5'000)) return operators_.kill_one(dice_);
  constexpr std::array deaths{Death::never, Death::in_handler, Death::near_commit, Death::before_reply};
  const Death death = dice_.pick(deaths);
  if (death == Death::never) {
    workers_[dice_.below(workers_.size())]->kill();
  } else {
    next_death_ = death;
  }
}

void Storm::hand_out(Time now) {
  for (auto& worker : workers_) {
    while (worker->is_ready() && worker->unanswered().size() < options_.threads) {
      Assignment assignment = next_assignment(now);
      if (assignment.arrivals.empty()) return;
      worker->assign(std::move(assignment));
    }
  }
}

Assignment Storm::next_assignment(Time now) {
  Assignment assignment{.number = ++last_assignment_, .is_batch = dice_.chance(5'000)};
  // With "fence", a handler waits for a later handler of its key. So this one must not be in the same batch.
  if (options_.subject == "fence") assignment.is_batch = false;
  assignment.is_at_once = assignment.is_batch && dice_.chance(5'000);
  assignment.skips_failures = dice_.chance(5'000);
  assignment.repaired_below = operators_.repaired_below();
  // Small batches are more frequent.
  assignment.arrivals = broker_.take(assignment.is_batch ? 1 + dice_.below(1 + dice_.below(largest_batch)) : 1, now);
  if (!assignment.arrivals.empty()) assignment.death = std::exchange(next_death_, Death::never);
  return assignment;
}

void Storm::wait() const {
  std::vector<pollfd> waits{{signals_.wake_fd(), POLLIN, 0}};
  for (const auto* processes : {&workers_, &relays_}) {
    for (const auto& process : *processes) waits.push_back({process->fd(), POLLIN, 0});
  }
  operators_.add_waits(waits);
  ::poll(waits.data(), waits.size(), tick_ms);
}

/// Workers end by themselves after their last assignment. A worker that does not end is killed.
void Storm::end_workers() {
  is_ending_ = true;
  for (auto* processes : {&workers_, &relays_}) {
    for (auto& process : *processes) {
      if (process) process->close_input();
    }
  }
  operators_.close_input();
  const Time give_up = steady_clock::now() + last_wait;
  while (!operators_.have_ended() && steady_clock::now() < give_up) {
    operators_.answer();
    std::this_thread::sleep_for(milliseconds(1));
  }
  operators_.remove();
  for (auto* processes : {&workers_, &relays_}) {
    for (auto& process : *processes) {
      while (process && !process->has_ended() && steady_clock::now() < give_up) {
        receive_replies(*process, steady_clock::now());
        std::this_thread::sleep_for(milliseconds(1));
      }
      process.reset();
    }
  }
}

/// The server may be unreachable while the command runs.
void Storm::await_command() {
  const Time give_up = steady_clock::now() + options_.grace;
  while (command_.is_running() && steady_clock::now() < give_up) {
    command_.attend(steady_clock::now(), false);
    std::this_thread::sleep_for(milliseconds(tick_ms));
  }
  if (command_.is_running()) cli::message("txinbox-torture: the command still runs");
}

void Storm::draw(Time now) {
  const std::chrono::duration<double> elapsed = now - start_;
  const std::chrono::duration<double> silent = now - last_acknowledged_;
  const auto& tally = broker_.tally();
  std::string text =
      fmt::format("{:.0f} s: {} keys, {} deliveries, {} acknowledged, {} workers killed, {} commands run",
                  elapsed.count(), cli::grouped(broker_.keys().size()), cli::grouped(tally.deliveries),
                  cli::grouped(tally.acknowledged), figures_.workers_killed, command_.runs());
  if (!relays_.empty()) text += fmt::format(", {} relays killed", figures_.relays_killed);
  if (!operators_.is_none()) {
    text += fmt::format(", {} dead letters, {} operators killed", dead_letters_.size(), operators_.killed());
  }
  if (silent.count() >= 1) text += fmt::format(", no answer for {:.0f} s", silent.count());
  progress_.draw(text);
}

}  // namespace txinbox::torture
