#include "run/loop.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <optional>
#include <stop_token>
#include <utility>

#include <txinbox/error.hpp>

#include "backend/failure.hpp"
#include "telemetry/listeners.hpp"
#include "types/handler_error.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

/// `Source::poll` is called at least this often.
constexpr milliseconds longest_poll = 1s;

/// The longest time of an option. A time point of the clock, in nanoseconds, ends after 292 years.
constexpr std::chrono::days longest_time(100'000);

void check(const RunOptions& options) {
  const auto require = [](bool holds, const char* text) {
    if (!holds) throw Error(ErrorCode::invalid_argument, text);
  };
  require(options.batch > 0, "RunOptions::batch must be at least 1");
  require(options.workers > 0, "RunOptions::workers must be at least 1");
  require(options.max_in_flight_bytes > 0, "RunOptions::max_in_flight_bytes must be at least 1");
  require(options.backoff >= 0ms && options.max_backoff >= options.backoff && options.max_backoff <= longest_time,
          "RunOptions::backoff must be at least zero and at most max_backoff, which is at most 100,000 days");
  require(options.breaker.pause > 0ms && options.breaker.max_pause >= options.breaker.pause &&
              options.breaker.max_pause <= std::chrono::days(1),
          "BreakerOptions::pause must be positive and at most max_pause, which is at most a day");
  require(options.status_interval > 0ms && options.status_interval <= longest_time,
          "RunOptions::status_interval must be positive and at most 100,000 days");
  require(!options.idle_exit || (*options.idle_exit >= 0ms && *options.idle_exit <= longest_time),
          "RunOptions::idle_exit must be from zero to 100,000 days");
}

milliseconds until(Scheduler::Time time) {
  return std::max(0ms, std::chrono::ceil<milliseconds>(time - Scheduler::Time::clock::now()));
}

}  // namespace

Loop::Loop(Source& source, const JobRunner& runner, const MessageOf& message_of, const RunOptions& options)
    : source_(source),
      runner_(runner),
      message_of_(message_of),
      options_(options),
      scheduler_(options, runner.job_size(), runner.options().max_attempts, source.can_rewind()),
      idle_exit_(options.idle_exit, Clock::now()) {
  check(options);
  if (!message_of) throw Error(ErrorCode::invalid_argument, "message_of is empty; give a function that finds the key");
  if (!options.dead_letter && !source.has_dead_letters()) {
    throw Error(ErrorCode::invalid_argument,
                "there is no place for dead letters: name a dead-letter queue in the options of the source, or set "
                "RunOptions::dead_letter");
  }
}

RunSummary Loop::run() {
  name_ = source_.status().name;
  source_.on_event([this](const SourceEvent& event) {
    if (event.type == SourceEventType::disconnected || event.type == SourceEventType::lanes_revoked) {
      may_have_lost_ = true;
    }
    if (event.type == SourceEventType::lanes_leaving) {
      acknowledge(scheduler_.call(&Scheduler::take_settlement, Clock::now()));
      return;
    }
    notify({.type = RunEventType::source, .source_event = &event});
  });
  const std::stop_callback on_stop(runner_.options().stop, [this] {
    scheduler_.end();
    source_.wake();
  });
  work_until_end();
  source_.close();
  source_.on_event({});
  notify_occurrences();
  if (const std::exception_ptr error = scheduler_.call(&Scheduler::error))
    std::rethrow_exception(original_error(error));
  RunSummary summary = scheduler_.call(&Scheduler::summary);
  summary.end = end_;
  return summary;
}

void Loop::work_until_end() {
  std::vector<std::jthread> workers;
  working_ = options_.workers;
  try {
    while (workers.size() < options_.workers) workers.emplace_back([this] { work(); });
    while (!scheduler_.call(&Scheduler::has_ended)) iterate(true);
    // Running handlers finish. Continue to poll, so that the broker does not take their messages back during this time.
    while (working_ > 0) iterate(false);
    workers.clear();
    settle();
  } catch (...) {
    scheduler_.end(std::current_exception());
    workers.clear();  // running handlers finish
    acknowledge_the_rest();
  }
}

/// Acknowledges what has been committed, although the source has failed. Otherwise the broker would deliver it again. A
/// broker that counts deliveries would count one more each time that the process is started again.
void Loop::acknowledge_the_rest() noexcept {
  try {
    acknowledge(scheduler_.call(&Scheduler::take_settlement, Clock::now()));
  } catch (...) {  // NOLINT(bugprone-empty-catch): these messages come again, and are duplicates
  }
}

void Loop::work() {
  while (true) {
    const std::optional<Job> job = scheduler_.take_job([this] { return runner_.has_left_over(); });
    if (!job) {
      runner_.tidy_up();
      end_pause_if_over();
      continue;
    }
    if (job->empty()) break;
    JobResult result;
    try {
      result = runner_.run(*job);
    } catch (...) {
      result.error = std::current_exception();
    }
    scheduler_.finished(*job, std::move(result));
    source_.wake();
  }
  if (runner_.has_left_over()) runner_.tidy_up();
  --working_;
  source_.wake();
}

void Loop::end_pause_if_over() noexcept {
  try {
    if (!scheduler_.call(&Scheduler::is_paused) || runner_.is_paused()) return;
    scheduler_.call(&Scheduler::unpause);
  } catch (...) {  // it asks again in a second
    return;
  }
  scheduler_.wake_workers();
  source_.wake();
}

void Loop::iterate(bool may_poll) {
  settle();
  notify_occurrences();
  notify_status();
  const std::size_t room = may_poll ? scheduler_.call(&Scheduler::room) : 0;
  auto incoming = source_.poll(room, time_to_wait());
  const bool polled_nothing = incoming.empty();
  if (std::exchange(may_have_lost_, false)) forget_lost();
  receive(std::move(incoming));
  if (idle_exit_.is_set()) end_if_idle(room > 0, polled_nothing);
}

/// The time without room, such as a pause, is no idle time.
void Loop::end_if_idle(bool had_room, bool polled_nothing) {
  if (!had_room || !scheduler_.call(&Scheduler::is_empty)) return idle_exit_.busy(Clock::now());
  if (!polled_nothing) return;
  const auto end = idle_exit_.polled_nothing(source_.status(), Clock::now());
  if (!end) return;
  end_ = *end;
  scheduler_.end();
}

milliseconds Loop::time_to_wait() {
  milliseconds wait = std::min(longest_poll, until(next_status_));
  if (const auto due = scheduler_.call(&Scheduler::next_due, Clock::now())) wait = std::min(wait, until(*due));
  if (const auto due = idle_exit_.due()) wait = std::min(wait, std::max(1ms, until(*due)));
  return wait;
}

void Loop::receive(std::vector<Incoming> incoming) {
  if (incoming.empty()) return;
  for (Incoming& each : incoming) {
    std::optional<Message> message;
    try {
      message = message_of_(each);
      message->message_id = traceable_id(std::move(message->message_id));
    } catch (const std::bad_alloc&) {
      throw;
    } catch (...) {
      const auto error = std::current_exception();
      const bool has_bad_key = Failure(error).is(ErrorCode::invalid_key);
      scheduler_.call(&Scheduler::add_dead_letter, std::move(each), has_bad_key ? "invalid_key" : "unreadable", error,
                      Clock::now());
      continue;
    }
    scheduler_.call(&Scheduler::add, std::move(each), std::move(*message), Clock::now());
  }
  scheduler_.wake_workers();
}

void Loop::settle() {
  // Acknowledge committed messages first: publishing a dead letter can take seconds, and can lose the connection.
  acknowledge(scheduler_.call(&Scheduler::take_settlement, Clock::now()));
  if (publish_dead_letters()) acknowledge(scheduler_.call(&Scheduler::take_settlement, Clock::now()));
}

void Loop::acknowledge(const Settlement& settlement) {
  if (!settlement.acknowledge.empty()) {
    std::vector<const Incoming*> done;
    done.reserve(settlement.acknowledge.size());
    for (const EntryPtr& entry : settlement.acknowledge) done.push_back(&entry->incoming);
    source_.acknowledge(done);
    notify({.type = RunEventType::acknowledged, .count = done.size()});
  }
  for (const std::uint64_t lane : settlement.lost) source_.resume(lane);
  for (const std::uint64_t lane : settlement.pause) source_.pause(lane);
  for (const EntryPtr& entry : settlement.rewind) source_.rewind(entry->incoming);
  for (const std::uint64_t lane : settlement.resume) source_.resume(lane);
}

/// Returns whether a dead letter was due.
bool Loop::publish_dead_letters() {
  const std::vector<EntryPtr> entries = scheduler_.call(&Scheduler::take_dead_letters, Clock::now());
  if (entries.empty()) return false;
  std::vector<DeadLetter> letters;
  letters.reserve(entries.size());
  for (const EntryPtr& entry : entries) {
    letters.push_back({.incoming = &entry->incoming,
                       .reason = entry->reason,
                       .error_class = error_class(entry->error),
                       .consumer = std::string(runner_.consumer()),
                       .business_key = entry->message.business_key,
                       .failures = entry->failures});
  }
  std::exception_ptr error;
  if (!options_.dead_letter) {
    source_.dead_letter(letters);
  } else {
    for (DeadLetter& letter : letters) {
      try {
        options_.dead_letter(letter);
        letter.confirmed = true;
      } catch (...) {
        error = std::current_exception();
      }
    }
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (letters[i].confirmed) {
      scheduler_.call(&Scheduler::dead_letter_confirmed, entries[i]);
    } else {
      scheduler_.call(&Scheduler::dead_letter_failed, entries[i], error, Clock::now());
    }
  }
  return true;
}

void Loop::forget_lost() {
  const Lost lost = scheduler_.call(&Scheduler::forget_lost, [&](const Incoming& each) { return source_.holds(each); });
  for (const EntryPtr& entry : lost.give_back) source_.give_back(entry->incoming);
  if (lost.count > 0) notify({.type = RunEventType::dropped, .count = lost.count});
}

void Loop::notify_occurrences() {
  for (const Occurrence& occurrence : scheduler_.call(&Scheduler::take_occurrences)) {
    RunEvent event{.type = occurrence.type, .error = occurrence.error, .backoff = occurrence.backoff};
    if (occurrence.entry) {
      event.business_key = occurrence.business_key;
      event.message_id = occurrence.entry->incoming.id;
      event.reason = occurrence.reason;
    }
    const std::string class_of_error = error_class(event.error);
    event.error_class = class_of_error;
    event.error = original_error(event.error);
    notify(std::move(event));
  }
}

void Loop::notify_status() {
  const auto now = Clock::now();
  if (now < next_status_) return;
  next_status_ = now + options_.status_interval;
  const SourceStatus status = source_.status();
  notify({.type = RunEventType::status, .status = &status});
}

void Loop::notify(RunEvent event) const noexcept {
  event.source = name_;
  event.consumer = runner_.consumer();
  detail::notify(runner_.options().listeners, event);
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
