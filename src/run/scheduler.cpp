// What the workers ask the scheduler. scheduler_broker.cpp has what the loop asks.

#include "run/scheduler.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <txinbox/error.hpp>

#include "backend/failure.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

/// Whether other messages would probably fail in the same way now.
bool is_outage(const Result& result) noexcept {
  if (result.outcome != Outcome::failed) return false;
  const Failure failure(result.error);
  return failure.is_of_environment() || failure.is_fatal_to_session() || failure.is(ErrorCode::acquire_timeout);
}

/// Whether the handler has failed, now, and not in an earlier delivery.
bool is_failure_of(const Result& result) noexcept {
  if (is_outage(result) || Failure(result.error).is(ErrorCode::invalid_key)) return false;
  return result.outcome == Outcome::failed || (result.outcome == Outcome::parked && result.error);
}

/// Whether the handler has refused the message for good, but this is not stored.
bool is_refused_by_handler(const Result& result) noexcept {
  const Failure failure(result.error);
  return result.outcome == Outcome::failed &&
         (failure.is(ErrorCode::rejected) || failure.is(ErrorCode::result_too_large) ||
          failure.is(ErrorCode::invalid_message));
}

/// The minimum of the default of `max_in_flight`. If it were smaller, a few messages that wait for a retry would leave
/// too little room for others.
constexpr std::size_t least_held = 16;

std::size_t max_held_of(const RunOptions& options, std::size_t job_size) {
  if (options.max_in_flight != 0) return options.max_in_flight;
  return std::max(4 * job_size * options.workers, least_held);
}

/// Why a delivery that failed is a dead letter. `becomes_dead_letter` recognizes `rejected`.
std::string_view reason_of(const std::exception_ptr& error) noexcept {
  const Failure failure(error);
  if (failure.is(ErrorCode::result_too_large)) return "result_too_large";
  if (failure.is(ErrorCode::unreadable)) return "unreadable";
  return failure.is(ErrorCode::invalid_message) ? "invalid_message" : "invalid_key";
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

void Scheduler::finished(const Job& job, JobResult result, Time now) {
  --running_;
  if (result.is_paused) {
    for (const EntryPtr& entry : job) entry->state = Entry::State::waiting;
    if (!std::exchange(is_paused_, true)) occurrences_.push_back({.type = RunEventType::paused});
  } else if (result.error) {
    for (const EntryPtr& entry : job) entry->state = Entry::State::waiting;
    nothing_ran(result.error);
    if (!has_ended_) outage(job, result.error, now);
  } else {
    for (std::size_t i = 0; i < job.size(); ++i) decide(job[i], result.results[i], now);
    const auto failed = std::ranges::find_if(
        result.results, [](const Result& each) { return action_for(each) == Action::redeliver && is_outage(each); });
    if (failed != result.results.end()) outage(job, failed->error, now);
  }
  give_back(job, now);
  count(breaker_.take_decided(), now);
  forgive(breaker_.take_forgiven(), now);
  if (breaker_.must_trip() && running_ == 0 && !has_ended_) trip(now);
}

void Scheduler::unpause() {
  if (std::exchange(is_paused_, false)) occurrences_.push_back({.type = RunEventType::unpaused});
}

/// Returns the messages that run again to their sequences, and the sequences to the queue.
void Scheduler::give_back(const Job& job, Time now) {
  for (auto entry = job.rbegin(); entry != job.rend(); ++entry) {
    if ((*entry)->is_lost) {
      release(*entry);
    } else if ((*entry)->state == Entry::State::waiting) {
      insert(**entry);
    }
  }
  for (const EntryPtr& entry : job) {
    if (entry->sequence->is_running) {
      entry->sequence->is_running = false;
      queue_.enqueue(entry->sequence, now);
    }
  }
}

void Scheduler::decide(const EntryPtr& entry, Result& result, Time now) {
  if (is_failure_of(result) && entry->uncounted.empty()) ++entry->failures;
  switch (result.outcome) {
    case Outcome::consumed:
      ++summary_.consumed;
      outages_.consumed(*entry);
      entry->undecided.clear();
      if (breaker_.works(*entry)) occurrences_.push_back({.type = RunEventType::resumed});
      break;
    case Outcome::already_consumed:
      ++summary_.already_consumed;  // perhaps without the database: ConsumerOptions::recent_keys
      outages_.database_answers();
      break;
    case Outcome::discarded:
      ++summary_.discarded;
      break;
    default:
      break;
  }
  switch (action_for(result)) {
    case Action::acknowledge:
      done(entry);
      break;
    case Action::dead_letter:
      if (keeps_order(*entry)) {
        if (result.outcome == Outcome::parked) return waits_for_operator(entry, result, now);
        if (is_refused_by_handler(result)) return runs_again(entry, result, now);  // until its failures park it
      }
      if (result.outcome == Outcome::parked && entry->handler_failed) breaker_.failed(entry, result.error, now);
      becomes_dead_letter(entry,
                          result.outcome == Outcome::failed ? reason_of(result.error) : to_string(result.outcome),
                          result.error, now);
      break;
    case Action::redeliver:
      runs_again(entry, result, now);
      break;
    case Action::stop:
      entry->state = Entry::State::waiting;
      end(result.error);
      break;
  }
}

void Scheduler::done(const EntryPtr& entry) {
  entry->state = Entry::State::done;
  if (entry->lane) {
    lanes_.touch(*entry);
  } else if (!entry->is_lost) {
    done_without_lane_.push_back(entry);
  }
}

void Scheduler::becomes_dead_letter(const EntryPtr& entry, std::string_view reason, std::exception_ptr error,
                                    Time now) {
  entry->state = Entry::State::dead_letter;
  entry->undecided.clear();
  breaker_.forget(*entry);
  entry->reason = Failure(error).is(ErrorCode::rejected) ? "rejected" : reason;
  entry->error = std::move(error);
  if (!entry->is_lost) dead_letters_.emplace(now, entry);
}

void Scheduler::runs_again(const EntryPtr& entry, const Result& result, Time now) {
  entry->state = Entry::State::waiting;
  if (result.outcome == Outcome::not_run || is_outage(result) || entry->is_lost) return;
  if (Failure(result.error).is(ErrorCode::stopped)) return end();
  entry->outages = 0;
  if (entry->is_held && result.outcome != Outcome::in_progress) leaves_hold(*entry);
  if (!entry->handler_failed || keeps_order(*entry)) return waits_after_failure(entry, result, now);
  breaker_.failed(entry, result.error, now);
  if (breaker_.sets_aside(*entry, now)) return set_aside(entry);
  if (!breaker_.is_tripped()) return waits_after_failure(entry, result, now);
  if (breaker_.goes_on(now)) {
    ++summary_.retries;
    ++entry->retries;
    return;
  }
  end_round(now);
  waits(entry, result, breaker_.pause(), now);
}

/// Whether no message may pass this one, not even if it is parked.
bool Scheduler::keeps_order(const Entry& entry) const noexcept { return hold_parked_ && entry.sequence->has_order(); }

/// The message is parked. It stays the first one of its sequence. After a wait, it is seen whether an operator has
/// decided.
void Scheduler::waits_for_operator(const EntryPtr& entry, const Result& result, Time now) {
  constexpr std::chrono::milliseconds shortest_wait{100};
  entry->state = Entry::State::waiting;
  entry->outages = 0;
  entry->suspected = nullptr;
  const std::exception_ptr error = result.error || entry->uncounted.empty() ? result.error : entry->uncounted.front();
  entry->uncounted.clear();  // otherwise they would count again after the operator has let it run
  if (entry->is_lost) return;
  if (!std::exchange(entry->is_held, true) || error) {
    entry->asks = 0;
    occurrences_.push_back(
        {.type = RunEventType::held, .entry = entry, .business_key = entry->message.business_key, .error = error});
  }
  entry->retries = std::max(entry->retries, 1);  // so that the other lanes are not kept waiting
  entry->sequence->not_before = now + std::max(backoff_.after(++entry->asks), shortest_wait);
  lanes_.touch(*entry);
}

/// An operator has let the message run, and it has failed again.
void Scheduler::leaves_hold(Entry& entry) {
  entry.is_held = false;
  entry.retries = 0;
}

void Scheduler::set_aside(const EntryPtr& entry) {
  entry->state = Entry::State::set_aside;
  ++summary_.retries;
  ++entry->retries;  // so that the broker does not deliver it again
  lanes_.touch(*entry);
  room_.set_waiting(*entry, true);
}

void Scheduler::waits_after_failure(const EntryPtr& entry, const Result& result, Time now) {
  ++summary_.retries;
  auto wait = backoff_.after(++entry->retries);
  if (result.retry_after > wait || result.outcome == Outcome::postponed) wait = result.retry_after;
  waits(entry, result, wait, now);
}

void Scheduler::waits(const EntryPtr& entry, const Result& result, std::chrono::milliseconds wait, Time now) {
  entry->sequence->not_before = now + wait;
  occurrences_.push_back({.type = RunEventType::retry,
                          .entry = entry,
                          .business_key = entry->message.business_key,
                          .error = result.error,
                          .backoff = wait});
  lanes_.touch(*entry);
  room_.set_waiting(*entry, true);
}

void Scheduler::nothing_ran(const std::exception_ptr& error) {
  const Failure failure(error);
  if (failure.is(ErrorCode::stopped)) {
    end();
  } else if (failure.action() == Action::stop) {
    end(error);
  }
}

void Scheduler::outage(const Job& job, const std::exception_ptr& error, Time now) {
  breaker_.database_is_away(now);
  if (outages_.is_reason(job)) {
    waits_after_failure(job.front(), {.outcome = Outcome::failed, .error = error}, now);
    outages_.suspect(job, error);
  } else if (const auto wait = outages_.met_by(job, now)) {
    occurrences_.push_back({.type = RunEventType::unavailable, .error = error, .backoff = *wait});
  }
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
