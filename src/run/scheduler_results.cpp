// The results of a job, for each of its messages: done, a dead letter, or another try.

#include <algorithm>
#include <utility>

#include <txinbox/error.hpp>

#include "backend/failure.hpp"
#include "run/scheduler.hpp"

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

/// Why a delivery that failed is a dead letter. `becomes_dead_letter` recognizes `rejected`.
std::string_view reason_of(const std::exception_ptr& error) noexcept {
  const Failure failure(error);
  if (failure.is(ErrorCode::result_too_large)) return "result_too_large";
  if (failure.is(ErrorCode::unreadable)) return "unreadable";
  return failure.is(ErrorCode::invalid_message) ? "invalid_message" : "invalid_key";
}

}  // namespace

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
  if (is_failure_of(result) && !entry->failed_before_handler && entry->uncounted.empty()) ++entry->failures;
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
        // The handler has refused the message for good, but this is not stored: it runs until its failures park it.
        const bool is_refused = result.outcome == Outcome::failed && !entry->failed_before_handler;
        if (is_refused) return runs_again(entry, result, now);
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
  constexpr std::chrono::days longest_wait(100'000);  // a handler can ask for more, and the clock ends after 292 years
  wait = std::min<std::chrono::milliseconds>(wait, longest_wait);
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
