#include "run/scheduler.hpp"

#include <algorithm>
#include <utility>

#include <txinbox/error.hpp>

#include "backend/error_classification.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

/// Whether other messages would probably fail in the same way now.
bool is_outage(const std::exception_ptr& error) noexcept {
  return is_environment_error(error) || is_fatal_to_session(error) || has_error_code(error, ErrorCode::acquire_timeout);
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
  if (has_error_code(error, ErrorCode::result_too_large)) return "result_too_large";
  return has_error_code(error, ErrorCode::invalid_message) ? "invalid_message" : "invalid_key";
}

}  // namespace

Scheduler::Scheduler(const RunOptions& options, std::size_t job_size)
    : job_size_(job_size),
      max_held_(max_held_of(options, job_size)),
      max_bytes_(options.max_in_flight_bytes),
      backoff_(options.backoff, options.max_backoff),
      lanes_(max_held_, max_bytes_),
      queue_(options.order) {}

EntryPtr Scheduler::hold(Incoming incoming) {
  auto entry = std::make_shared<Entry>();
  entry->incoming = std::move(incoming);
  ++summary_.received;
  bytes_ += entry->incoming.body.size();
  entry->held = held_.insert(held_.end(), entry);
  if (entry->incoming.lane) lanes_.add(*entry);
  return entry;
}

void Scheduler::release(const EntryPtr& entry) {
  bytes_ -= entry->incoming.body.size();
  held_.erase(entry->held);
}

void Scheduler::add(Incoming incoming, Message message) {
  const std::lock_guard lock(mutex_);
  const EntryPtr entry = hold(std::move(incoming));
  entry->message = std::move(message);
  entry->sequence = queue_.sequence_for(entry->incoming);
  entry->sequence->waiting.push_back(entry.get());
  queue_.enqueue(entry->sequence);
}

void Scheduler::add_dead_letter(Incoming incoming, std::string_view reason, std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  becomes_dead_letter(hold(std::move(incoming)), reason, std::move(error));
}

std::size_t Scheduler::room() const {
  const std::lock_guard lock(mutex_);
  if (bytes_ - lanes_.paused_bytes() >= max_bytes_) return 0;
  const std::size_t held = held_.size() - lanes_.paused_messages();
  return held < max_held_ ? max_held_ - held : 0;
}

std::size_t Scheduler::forget_lost(const Source& source) {
  const std::lock_guard lock(mutex_);
  std::size_t lost = 0;
  for (auto next = held_.begin(); next != held_.end();) {
    const EntryPtr entry = *next++;
    if (entry->is_lost || source.holds(entry->incoming)) continue;
    ++lost;
    entry->is_lost = true;
    lanes_.remove_lost(*entry);
    if (entry->state == Entry::State::running) continue;  // `finish` releases it
    // The sequence stays where it is queued. The queue skips it if it is empty.
    if (entry->state == Entry::State::waiting) std::erase(entry->sequence->waiting, entry.get());
    release(entry);
  }
  std::erase_if(dead_letters_, [](const auto& letter) { return letter.second->is_lost; });
  std::erase_if(done_without_lane_, [](const EntryPtr& entry) { return entry->is_lost; });
  summary_.dropped += lost;
  return lost;
}

std::vector<EntryPtr> Scheduler::take_dead_letters() {
  const std::lock_guard lock(mutex_);
  std::vector<EntryPtr> due;
  const auto now = Clock::now();
  while (!dead_letters_.empty() && dead_letters_.begin()->first <= now) {
    due.push_back(std::move(dead_letters_.begin()->second));
    dead_letters_.erase(dead_letters_.begin());
  }
  return due;
}

void Scheduler::dead_letter_confirmed(const EntryPtr& entry) {
  const std::lock_guard lock(mutex_);
  ++summary_.dead_letters;
  occurrences_.push_back({.type = RunEventType::dead_letter,
                          .entry = entry,
                          .business_key = entry->message.business_key,
                          .error = entry->error});
  if (!entry->is_lost) done(entry);
}

void Scheduler::dead_letter_failed(const EntryPtr& entry, std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (entry->is_lost) return;
  const auto wait = backoff_.after(++entry->failures);
  dead_letters_.emplace(Clock::now() + wait, entry);
  occurrences_.push_back({.type = RunEventType::dead_letter_failed,
                          .entry = entry,
                          .business_key = entry->message.business_key,
                          .error = std::move(error),
                          .backoff = wait});
  lanes_.touch(*entry);
}

Settlement Scheduler::take_settlement() {
  const std::lock_guard lock(mutex_);
  Settlement settlement{.acknowledge = std::exchange(done_without_lane_, {})};
  lanes_.settle(settlement);
  for (const EntryPtr& entry : settlement.acknowledge) release(entry);
  summary_.settled += settlement.acknowledge.size();
  return settlement;
}

std::vector<Occurrence> Scheduler::take_occurrences() {
  const std::lock_guard lock(mutex_);
  return std::exchange(occurrences_, {});
}

std::optional<Scheduler::Clock::time_point> Scheduler::next_dead_letter() const {
  const std::lock_guard lock(mutex_);
  if (dead_letters_.empty()) return std::nullopt;
  return dead_letters_.begin()->first;
}

void Scheduler::end(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  end_locked(std::move(error));
}

void Scheduler::end_locked(std::exception_ptr error) {
  has_ended_ = true;
  if (!error_) error_ = std::move(error);
  has_work_.notify_all();
}

Job Scheduler::take_job() {
  std::unique_lock lock(mutex_);
  while (!has_ended_) {
    const auto now = Clock::now();
    // The time is copied: another thread may change or remove it during the wait, which compares it at its end.
    std::optional<Clock::time_point> until;
    if (now < blocked_until_) {
      until = blocked_until_;
    } else {
      Job job = queue_.take(now, job_size_);
      if (!job.empty()) return job;
      until = queue_.next_due();
    }
    if (until) {
      has_work_.wait_until(lock, *until);
    } else {
      has_work_.wait(lock);
    }
  }
  return {};
}

void Scheduler::finish(const Job& job, JobResult result) {
  const std::lock_guard lock(mutex_);
  if (result.error) {
    nothing_ran(result.error);
    for (const EntryPtr& entry : job) entry->state = Entry::State::waiting;
  } else {
    for (std::size_t i = 0; i < job.size(); ++i) decide(job[i], result.results[i]);
  }
  give_back(job);
  has_work_.notify_all();
}

/// Returns the messages that run again to their sequences, and the sequences to the queue.
void Scheduler::give_back(const Job& job) {
  for (auto entry = job.rbegin(); entry != job.rend(); ++entry) {
    if ((*entry)->is_lost) {
      release(*entry);
    } else if ((*entry)->state == Entry::State::waiting) {
      (*entry)->sequence->waiting.push_front(entry->get());
    }
  }
  for (const EntryPtr& entry : job) {
    if (entry->sequence->is_running) {
      entry->sequence->is_running = false;
      queue_.enqueue(entry->sequence);
    }
  }
}

void Scheduler::decide(const EntryPtr& entry, Result& result) {
  switch (result.outcome) {
    case Outcome::consumed:
      ++summary_.consumed;
      outages_ = 0;
      break;
    case Outcome::already_consumed:
      ++summary_.already_consumed;
      outages_ = 0;
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
      becomes_dead_letter(
          entry, result.outcome == Outcome::failed ? reason_of(result.error) : to_string(result.outcome), result.error);
      break;
    case Action::redeliver:
      runs_again(entry, result);
      break;
    case Action::stop:
      entry->state = Entry::State::waiting;
      end_locked(result.error);
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

void Scheduler::becomes_dead_letter(const EntryPtr& entry, std::string_view reason, std::exception_ptr error) {
  entry->state = Entry::State::dead_letter;
  entry->reason = has_error_code(error, ErrorCode::rejected) ? "rejected" : reason;
  entry->error = std::move(error);
  if (!entry->is_lost) dead_letters_.emplace(Clock::now(), entry);
}

void Scheduler::runs_again(const EntryPtr& entry, const Result& result) {
  entry->state = Entry::State::waiting;
  if (result.outcome == Outcome::not_run) return;
  if (has_error_code(result.error, ErrorCode::stopped)) {
    end_locked({});
    return;
  }
  if (result.outcome == Outcome::failed && is_outage(result.error)) {
    // After the wait the other messages run first, in case that only this message has the error.
    database_unavailable(result.error);
    entry->sequence->not_before = blocked_until_ + std::chrono::milliseconds(1);
    return;
  }
  ++summary_.retries;
  auto wait = backoff_.after(++entry->failures);
  if (result.retry_after > wait || result.outcome == Outcome::postponed) wait = result.retry_after;
  entry->sequence->not_before = Clock::now() + wait;
  occurrences_.push_back({.type = RunEventType::retry,
                          .entry = entry,
                          .business_key = entry->message.business_key,
                          .error = result.error,
                          .backoff = wait});
  lanes_.touch(*entry);
}

void Scheduler::nothing_ran(const std::exception_ptr& error) {
  if (has_error_code(error, ErrorCode::stopped)) {
    end_locked({});
  } else if (action_for(error) == Action::stop) {
    end_locked(error);
  } else {
    database_unavailable(error);
  }
}

/// Makes all messages wait until the same time. Each further outage makes the wait longer. The first success resets it.
void Scheduler::database_unavailable(const std::exception_ptr& error) {
  const auto now = Clock::now();
  if (now < blocked_until_) return;  // another worker has already reported the outage
  // One transaction shows whether the database is available again. So this wait may be shorter than the wait of a
  // message that fails.
  constexpr std::chrono::milliseconds longest_wait{5'000};
  const auto wait = std::min(backoff_.after(++outages_), longest_wait);
  blocked_until_ = now + wait;
  occurrences_.push_back({.type = RunEventType::unavailable, .error = error, .backoff = wait});
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
