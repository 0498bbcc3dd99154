// The answers of the consumer in a SchedulerWorld: what becomes of each message.

#include <algorithm>
#include <exception>
#include <set>
#include <stdexcept>
#include <string>

#include <fmt/format.h>
#include <txinbox/error.hpp>

#include "support/scheduler_world.hpp"

namespace txinbox::test {

using detail::Job;

namespace {

std::exception_ptr outage() { return std::make_exception_ptr(Error(ErrorCode::acquire_timeout, "no connection")); }

}  // namespace

Fate SchedulerWorld::fate_of(const Id& id) const {
  if (!handler_works) return Fate::fails;
  const auto found = fates.find(id);
  return found == fates.end() || found->second.times == 0 ? Fate::good : found->second.fate;
}

/// The act of a consumer after the handler has failed.
Result SchedulerWorld::failed(detail::Entry& entry) {
  entry.handler_failed = true;
  const Id id = id_of(entry.incoming);
  const auto error = std::make_exception_ptr(std::runtime_error("no stock"));
  if (parks_after_ > 0 && entry.counts_later && entry.undecided.size() + 1 >= static_cast<std::size_t>(parks_after_)) {
    aside_.insert(id);
  }
  if (parks_after_ > 0 && !entry.counts_later && ++failures[id] >= parks_after_) return park(id, error);
  return {.outcome = Outcome::failed, .error = error};
}

Result SchedulerWorld::park(const Id& id, std::exception_ptr error) {
  if (options_.hold_parked && has_lanes_) {
    parked.insert(id);
  } else {
    decided_.insert(id);
  }
  return {.outcome = Outcome::parked, .error = std::move(error)};
}

void SchedulerWorld::retry(const Id& id) {
  if (parked.erase(id) == 0) return;
  failures[id] = 0;
  proven_failures[id] = 0;
}

void SchedulerWorld::discard(const Id& id) {
  if (parked.erase(id) > 0) discarded_.insert(id);
}

/// The handler must not run after a later message of the sequence was consumed, unless the message came again.
void SchedulerWorld::check_not_passed(const detail::Entry& entry) {
  const Id id = id_of(entry.incoming);
  if (!has_lanes_ || has_lost_) return;
  for (const Id& each : consumed_) {
    const bool in_sequence = options_.order == Ordering::lane || key_of(each.second) == key_of(id.second);
    if (each.first == id.first && each.second > id.second && in_sequence) {
      wrong(fmt::format("{} runs after {}@{} was consumed", entry.incoming.id, each.first, each.second));
    }
  }
}

Result SchedulerWorld::result_of(detail::Entry& entry) {
  const Id id = id_of(entry.incoming);
  if (operator_retries) retry(id);
  if (parked.contains(id)) return {.outcome = Outcome::parked};
  if (discarded_.contains(id)) {
    decided_.insert(id);
    ended_.insert(id);
    return {.outcome = Outcome::discarded};
  }
  check_not_passed(entry);
  ++runs_[id];
  aside_.erase(id);
  const Fate fate = fate_of(id);
  if (handler_works && fate != Fate::good) --fates[id].times;
  switch (fate) {
    case Fate::good:
      decided_.insert(id);
      consumed_.insert(id);
      return {.outcome = ended_.insert(id).second ? Outcome::consumed : Outcome::already_consumed};
    case Fate::fails:
      return failed(entry);
    case Fate::postponed:
      return {.outcome = Outcome::postponed, .retry_after = postponed_for};
    case Fate::rejected:  // the consumer could not store that the message is parked
      if (!options_.hold_parked || !has_lanes_) decided_.insert(id);
      return {.outcome = Outcome::failed, .error = std::make_exception_ptr(Error(ErrorCode::rejected, "no"))};
    case Fate::poison:
      return {.outcome = Outcome::failed, .error = outage()};
  }
  return {};
}

/// The work of `JobRunner` before the handler runs. Returns none if the handler is to run.
std::optional<Result> SchedulerWorld::count_failures(detail::Entry& entry) {
  const Id id = id_of(entry.incoming);
  for (; !entry.uncounted.empty(); entry.uncounted.erase(entry.uncounted.begin())) {
    if (held_elsewhere.contains(id)) return Result{.outcome = Outcome::in_progress};
    if (lost_counts[id] > 0) {
      --lost_counts[id];
      return Result{.outcome = Outcome::failed, .error = outage()};
    }
    const bool is_outage = is_transient(entry.uncounted.front());
    const int count = is_outage ? ++proven_failures[id] : ++failures[id];
    if (count < (is_outage ? max_attempts : parks_after_)) continue;
    return park(id, nullptr);
  }
  return std::nullopt;
}

/// The answer of a consumer. After a message that fails, later messages of its sequence do not run.
detail::JobResult SchedulerWorld::result_of(const Job& job) {
  if (job.size() > 1 && std::ranges::any_of(job, [](const auto& entry) { return !entry->uncounted.empty(); })) {
    wrong("a message whose failure is not counted yet does not run alone");
  }
  const bool has_poison =
      std::ranges::any_of(job, [&](const auto& entry) { return fate_of(id_of(entry->incoming)) == Fate::poison; });
  if (database_is_down || (has_poison && job.size() > 1)) return {.error = outage()};
  if (auto result = count_failures(*job.front())) return {.results = {std::move(*result)}};
  detail::JobResult result;
  std::set<std::string> stopped;
  for (const auto& entry : job) {
    if (stopped.contains(sequence_of(entry->incoming))) {
      result.results.push_back({.outcome = Outcome::not_run});
      continue;
    }
    result.results.push_back(result_of(*entry));
    const Result& last = result.results.back();
    const bool waits = action_for(last) == Action::redeliver || last.outcome == Outcome::failed;
    if (waits || parked.contains(id_of(entry->incoming))) stopped.insert(sequence_of(entry->incoming));
  }
  return result;
}

}  // namespace txinbox::test
