#include "run/outages.hpp"

#include <algorithm>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

void Outages::begins(const Job& job) {
  ++jobs_;
  for (const EntryPtr& entry : job) {
    prove(*entry);
    entry->job = jobs_;
    entry->outages_seen = seen_;
  }
}

/// Decides whether an error that the message has met counts as its failure: a job that began after it has succeeded,
/// and no other job met an outage from the beginning of the message's job until now.
void Outages::prove(Entry& entry) const {
  const bool others_succeeded = latest_successful_ > entry.outage_after && seen_ == entry.outages_seen;
  if (entry.suspected && others_succeeded) {
    entry.uncounted.push_back(entry.suspected);
    ++entry.failures;
  }
  entry.suspected = nullptr;
}

void Outages::consumed(const Entry& entry) noexcept {
  database_answers();
  latest_successful_ = std::max(latest_successful_, entry.job);
}

bool Outages::is_reason(const Job& job) const noexcept {
  const Entry& first = *job.front();
  return first.is_suspect() && latest_successful_ > first.outage_after && !first.is_lost;
}

void Outages::suspect(const Job& job, const std::exception_ptr& error) const {
  Entry& first = *job.front();
  first.outage_after = jobs_;
  // If earlier failures are not counted yet, the error came when they were to be counted: the handler has not run.
  if (first.uncounted.empty()) first.suspected = error;
}

std::optional<std::chrono::milliseconds> Outages::met_by(const Job& job, Time now) {
  ++seen_;
  std::optional<std::chrono::milliseconds> wait;
  if (now >= blocked_until_) {
    // One transaction shows whether the database is available again. So this wait may be shorter than the wait of a
    // message that fails.
    constexpr std::chrono::milliseconds longest_wait{5'000};
    wait = std::min(backoff_.after(++outages_), longest_wait);
    blocked_until_ = now + *wait;
  }
  for (const EntryPtr& entry : job) {
    if (entry->state != Entry::State::waiting || entry->is_lost) continue;
    entry->outage_after = jobs_;
    ++entry->outages;
    // After the wait the other messages run first.
    entry->sequence->not_before = blocked_until_ + std::chrono::milliseconds(1);
  }
  return wait;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
