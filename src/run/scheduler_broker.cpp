// The loop's calls about the broker: the messages that it holds, their acknowledgements and their dead letters.

#include <algorithm>
#include <utility>

#include "run/scheduler.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

EntryPtr Scheduler::hold(Incoming incoming, Time now) {
  auto entry = std::make_shared<Entry>();
  entry->incoming = std::move(incoming);
  ++summary_.received;
  room_.add(*entry);
  entry->held = held_.insert(held_.end(), entry);
  entry->number = ++held_so_far_;
  if (entry->incoming.lane) lanes_.add(*entry, now);
  return entry;
}

void Scheduler::release(const EntryPtr& entry) {
  room_.remove(*entry);
  held_.erase(entry->held);
}

void Scheduler::add(Incoming incoming, Message message, Time now) {
  const EntryPtr entry = hold(std::move(incoming), now);
  entry->message = std::move(message);
  entry->message.incoming = &entry->incoming;
  entry->sequence = queue_.sequence_for(entry->incoming);
  entry->sequence->waiting.push_back(entry.get());
  queue_.enqueue(entry->sequence, now);
}

void Scheduler::add_dead_letter(Incoming incoming, std::string_view reason, std::exception_ptr error, Time now) {
  becomes_dead_letter(hold(std::move(incoming), now), reason, std::move(error), now);
}

Lost Scheduler::forget_lost(const std::function<bool(const Incoming&)>& is_held) {
  std::vector<EntryPtr> lost;
  for (const EntryPtr& entry : held_) {
    if (entry->is_lost || is_held(entry->incoming)) continue;
    entry->is_lost = true;
    lost.push_back(entry);
  }
  Lost result;
  for (Entry* entry : lanes_.remove_lost()) {
    if (std::exchange(entry->is_lost, true)) continue;
    lost.push_back(*entry->held);
    result.give_back.push_back(*entry->held);
  }
  for (const EntryPtr& entry : lost) {
    if (entry->state != Entry::State::running) drop(*entry);  // otherwise `finished` releases it
  }
  std::erase_if(dead_letters_, [](const auto& letter) { return letter.second->is_lost; });
  breaker_.forget_lost();
  std::erase_if(done_without_lane_, [](const EntryPtr& entry) { return entry->is_lost; });
  result.count = lost.size();
  summary_.dropped += lost.size();
  return result;
}

/// Releases a message that no worker has and that is in no lane any more.
void Scheduler::drop(Entry& entry) {
  const EntryPtr kept = *entry.held;
  if (entry.state == Entry::State::waiting) {
    std::erase(entry.sequence->waiting, &entry);
    queue_.forget_if_empty(entry.sequence);
  }
  release(kept);
}

std::vector<EntryPtr> Scheduler::take_dead_letters(Time now) {
  std::vector<EntryPtr> due;
  while (!dead_letters_.empty() && dead_letters_.begin()->first <= now) {
    due.push_back(std::move(dead_letters_.begin()->second));
    dead_letters_.erase(dead_letters_.begin());
  }
  return due;
}

void Scheduler::dead_letter_confirmed(const EntryPtr& entry) {
  ++summary_.dead_letters;
  occurrences_.push_back({.type = RunEventType::dead_letter,
                          .entry = entry,
                          .business_key = entry->message.business_key,
                          .reason = entry->reason,
                          .error = entry->error});
  if (!entry->is_lost) done(entry);
}

void Scheduler::dead_letter_failed(const EntryPtr& entry, std::exception_ptr error, Time now) {
  if (entry->is_lost) return;
  const auto wait = backoff_.after(++entry->retries);
  entry->letter_failed = true;
  if (!has_ended_) dead_letters_.emplace(now + wait, entry);
  occurrences_.push_back({.type = RunEventType::dead_letter_failed,
                          .entry = entry,
                          .business_key = entry->message.business_key,
                          .reason = entry->reason,
                          .error = std::move(error),
                          .backoff = wait});
  lanes_.touch(*entry);
  room_.set_waiting(*entry, true);
}

Settlement Scheduler::take_settlement(Time now) {
  Settlement settlement{.acknowledge = std::exchange(done_without_lane_, {})};
  lanes_.settle(settlement, now);
  for (const EntryPtr& entry : settlement.acknowledge) release(entry);
  summary_.acknowledged += settlement.acknowledge.size();
  if (has_ended_) return settlement;
  if (const Amount excess = room_.excess(lanes_.paused()); !excess.is_zero()) {
    lanes_.pause(settlement, excess, has_free_worker() && !queue_.is_any_ready(now), now);
  }
  if (const Amount excess = room_.waiting_excess(lanes_.paused()); can_rewind_ && !excess.is_zero()) {
    for (Entry* entry : lanes_.rewind(settlement, excess)) {
      if (entry->state == Entry::State::waiting) --summary_.received;  // it is received again
      drop(*entry);
    }
  }
  return settlement;
}

std::vector<Occurrence> Scheduler::take_occurrences() { return std::exchange(occurrences_, {}); }

std::optional<Scheduler::Time> Scheduler::next_due(Time now) const {
  std::optional<Time> due;
  if (!dead_letters_.empty()) due = dead_letters_.begin()->first;
  if (has_free_worker() && !room_.excess(lanes_.paused()).is_zero()) {
    const auto slow = lanes_.next_slow(now);
    if (slow && (!due || *slow < *due)) due = slow;
  }
  return due;
}

void Scheduler::end(std::exception_ptr error) {
  std::erase_if(dead_letters_, [](const auto& letter) { return letter.second->letter_failed; });
  if (!has_ended_ && breaker_.is_tripped()) occurrences_.push_back({.type = RunEventType::resumed});
  unpause();
  has_ended_ = true;
  if (!error_) error_ = std::move(error);
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
