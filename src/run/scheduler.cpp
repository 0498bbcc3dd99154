// Which job a worker gets next. scheduler_results.cpp has what its results mean, and scheduler_broker.cpp what the loop
// asks.

#include "run/scheduler.hpp"

#include <algorithm>
#include <utility>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

/// The minimum of the default of `max_in_flight`. If it were smaller, a few messages that wait for a retry would leave
/// too little room for others.
constexpr std::size_t least_held = 16;

std::size_t max_held_of(const RunOptions& options, std::size_t job_size) {
  if (options.max_in_flight != 0) return options.max_in_flight;
  return std::max(4 * job_size * options.workers, least_held);
}

}  // namespace

Scheduler::Scheduler(const RunOptions& options, std::size_t job_size, int max_attempts, bool can_rewind,
                     std::uint32_t seed)
    : job_size_(job_size),
      workers_(options.workers),
      can_rewind_(can_rewind),
      hold_parked_(options.hold_parked),
      backoff_(options.backoff, options.max_backoff, seed),
      outages_(backoff_),
      breaker_(options.breaker, max_attempts, max_held_of(options, job_size)),
      room_({.messages = max_held_of(options, job_size), .bytes = options.max_in_flight_bytes},
            {.messages = options.max_waiting, .bytes = options.max_waiting_bytes}),
      queue_(options.order) {}

Scheduler::Next Scheduler::next(Time now) {
  if (has_ended_) return End{};
  if (is_paused_) return Wait{};
  if (now < outages_.blocked_until()) return Wait{outages_.blocked_until()};
  if (breaker_.must_trip()) return Wait{};  // one of the jobs that run may consume a message
  if (breaker_.is_tripped()) {
    if (running_ > 0) return Wait{};  // it is a probe
    if (now < breaker_.resumes_at()) return Wait{breaker_.resumes_at()};
  }
  Job job = take_job(now);
  if (job.empty()) return Wait{next_job_due(now)};
  ++running_;
  outages_.begins(job);
  const bool is_any_kept = std::ranges::any_of(job, [this](const EntryPtr& each) { return keeps_order(*each); });
  for (const EntryPtr& entry : job) {
    entry->counts_later = breaker_.is_undecided() && !is_any_kept;
    entry->has_failed = entry->runs_alone();
    entry->handler_failed = false;
    room_.set_waiting(*entry, false);
  }
  return job;
}

std::optional<Scheduler::Time> Scheduler::next_job_due(Time now) const {
  const auto due = queue_.next_due();
  if (breaker_.is_tripped()) return now < breaker_.resumes_at() ? breaker_.resumes_at() : due;
  if (!breaker_.has_set_aside()) return due;
  return due ? std::min(*due, breaker_.gives_up_at()) : breaker_.gives_up_at();
}

Job Scheduler::take_job(Time now) {
  if (breaker_.is_tripped()) return take_probe(now);
  Job job = queue_.take(now, job_size_);
  if (breaker_.has_set_aside() && (now >= breaker_.gives_up_at() || (job.empty() && !can_show_soon(now)))) {
    count(breaker_.take_set_aside(), now);
    if (job.empty()) job = queue_.take(now, job_size_);
  }
  if (!job.empty()) {
    Entry& first = *job.front();
    const bool counts = !first.undecided.empty() && (!breaker_.is_undecided() || !others_can_show(first));
    if (counts) {
      breaker_.forget(first);
      count(first);
    }
  }
  return job;
}

Job Scheduler::take_probe(Time now) {
  Job probe = queue_.take(now, 1);
  if (probe.empty() && breaker_.has_set_aside()) end_round(now);
  if (!probe.empty()) breaker_.begin_probe(now);
  return probe;
}

void Scheduler::end_round(Time now) {
  breaker_.end_round(now);
  for (const EntryPtr& entry : breaker_.set_aside()) put_back(entry, now);
}

/// Whether a message can show within a minute whether the handler works.
bool Scheduler::can_show_soon(Time now) const {
  constexpr std::chrono::minutes soon(1);
  const auto due = queue_.next_due();
  return running_ > 0 || (due && *due <= now + soon);
}

/// Whether a message that has not failed can show whether the handler works.
bool Scheduler::others_can_show(const Entry& entry) const {
  return std::ranges::any_of(held_, [&](const EntryPtr& each) {
    if (each.get() == &entry) return false;
    if (each->state == Entry::State::running) return !each->has_failed;  // a worker has its other members
    return each->state == Entry::State::waiting && !each->runs_alone();  // a held one runs alone
  });
}

/// The undecided failures of the message count.
void Scheduler::count(Entry& entry) {
  std::ranges::move(std::exchange(entry.undecided, {}), std::back_inserter(entry.uncounted));
}

void Scheduler::count(const std::vector<EntryPtr>& entries, Time now) {
  for (const EntryPtr& entry : entries) {
    count(*entry);
    put_back(entry, now);
  }
}

/// The undecided failures of these messages do not count.
void Scheduler::forgive(const std::vector<EntryPtr>& entries, Time now) {
  for (const EntryPtr& entry : entries) {
    entry->undecided.clear();
    put_back(entry, now);
  }
}

void Scheduler::trip(Time now) {
  occurrences_.push_back({.type = RunEventType::tripped, .error = breaker_.error(), .backoff = breaker_.pause()});
  breaker_.trip(now);
  for (const EntryPtr& entry : breaker_.set_aside()) put_back(entry, now);
}

/// If the message was set aside, it can run again.
void Scheduler::put_back(const EntryPtr& entry, Time now) {
  if (entry->state != Entry::State::set_aside || entry->is_lost) return;
  has_put_back_ = true;
  entry->state = Entry::State::waiting;
  entry->sequence = queue_.sequence_for(entry->incoming);
  insert(*entry);
  queue_.enqueue(entry->sequence, now);
}

/// Adds the message to its sequence, in front of those that came after it.
void Scheduler::insert(Entry& entry) {
  auto& waiting = entry.sequence->waiting;
  waiting.insert(std::ranges::find_if(waiting, [&](const Entry* each) { return each->number > entry.number; }), &entry);
}

void Scheduler::unpause() {
  if (std::exchange(is_paused_, false)) occurrences_.push_back({.type = RunEventType::unpaused});
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
