#include "run/sequence_queue.hpp"

#include <utility>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

bool may_join(const Job& job, const Entry& entry) {
  if (job.empty()) return true;
  const Entry& first = *job.front();
  return !entry.runs_alone() && !first.runs_alone() && entry.has_failed_before() == first.has_failed_before();
}

}  // namespace

std::shared_ptr<Sequence> SequenceQueue::sequence_for(const Incoming& incoming) {
  const bool by_key = order_ == Ordering::key;
  if (!incoming.lane || (by_key && !incoming.key)) return std::make_shared<Sequence>();
  std::string id = std::to_string(*incoming.lane);
  if (by_key) id.append("/").append(*incoming.key);
  auto& sequence = sequences_[id];
  if (!sequence) {
    sequence = std::make_shared<Sequence>();
    sequence->id = std::move(id);
  }
  return sequence;
}

void SequenceQueue::enqueue(const std::shared_ptr<Sequence>& sequence, Clock::time_point now) {
  if (sequence->is_queued || sequence->is_running) return;
  if (sequence->waiting.empty()) return forget(sequence);
  sequence->is_queued = true;
  if (sequence->not_before > now) {
    delayed_.emplace(sequence->not_before, sequence);
  } else {
    make_ready(sequence);
  }
}

void SequenceQueue::make_ready(std::shared_ptr<Sequence> sequence) {
  const bool failed = !sequence->waiting.empty() && sequence->waiting.front()->has_failed_before();
  (failed ? ready_again_ : ready_).push_back(std::move(sequence));
}

void SequenceQueue::forget_if_empty(const std::shared_ptr<Sequence>& sequence) {
  if (!sequence->is_running && sequence->waiting.empty()) forget(sequence);
}

void SequenceQueue::forget(const std::shared_ptr<Sequence>& sequence) {
  const auto found = sequences_.find(sequence->id);
  if (found != sequences_.end() && found->second == sequence) sequences_.erase(found);
}

void SequenceQueue::enqueue_due(Clock::time_point now) {
  while (!delayed_.empty() && delayed_.begin()->first <= now) {
    make_ready(std::move(delayed_.begin()->second));
    delayed_.erase(delayed_.begin());
  }
}

Job SequenceQueue::take(Clock::time_point now, std::size_t most) {
  Job job;
  const auto has_room_for = [&](const Sequence& sequence) {
    return job.size() < most && !sequence.waiting.empty() && may_join(job, *sequence.waiting.front());
  };
  if (!is_any_ready(now)) return job;
  for (auto& ready = next_queue(); !ready.empty() && has_room_for(*ready.front()); drop_empty(ready, now)) {
    const auto sequence = std::move(ready.front());
    ready.pop_front();
    sequence->is_queued = false;
    sequence->is_running = true;
    while (has_room_for(*sequence)) {
      Entry& entry = *sequence->waiting.front();
      sequence->waiting.pop_front();
      entry.state = Entry::State::running;
      job.push_back(*entry.held);
    }
  }
  return job;
}

bool SequenceQueue::is_any_ready(Clock::time_point now) {
  enqueue_due(now);
  drop_empty(ready_, now);
  drop_empty(ready_again_, now);
  return !ready_.empty() || !ready_again_.empty();
}

/// Drops the first sequences that are empty: the broker has taken their messages back.
void SequenceQueue::drop_empty(std::deque<std::shared_ptr<Sequence>>& ready, Clock::time_point now) {
  while (!ready.empty() && ready.front()->waiting.empty()) {
    const auto sequence = std::move(ready.front());
    ready.pop_front();
    sequence->is_queued = false;
    enqueue(sequence, now);  // forgets it
  }
}

/// Returns the ready queue for the next job. One of them is not empty.
std::deque<std::shared_ptr<Sequence>>& SequenceQueue::next_queue() {
  const bool from_failed = ready_.empty() || (is_turn_of_failed_ && !ready_again_.empty());
  is_turn_of_failed_ = !from_failed;
  return from_failed ? ready_again_ : ready_;
}

std::optional<SequenceQueue::Clock::time_point> SequenceQueue::next_due() const {
  if (delayed_.empty()) return std::nullopt;
  return delayed_.begin()->first;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
