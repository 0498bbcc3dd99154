#include "run/sequence_queue.hpp"

#include <utility>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

bool may_join(const Job& job, const Entry& entry) {
  return job.empty() || !(entry.runs_alone() || job.front()->runs_alone());
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
    ready_.push_back(sequence);
  }
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
    ready_.push_back(std::move(delayed_.begin()->second));
    delayed_.erase(delayed_.begin());
  }
}

Job SequenceQueue::take(Clock::time_point now, std::size_t most) {
  Job job;
  const auto has_room_for = [&](const Sequence& sequence) {
    return job.size() < most && !sequence.waiting.empty() && may_join(job, *sequence.waiting.front());
  };
  while (is_any_ready(now) && has_room_for(*ready_.front())) {
    const auto sequence = std::move(ready_.front());
    ready_.pop_front();
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
  // A sequence is empty if the broker has taken its messages back.
  while (!ready_.empty() && ready_.front()->waiting.empty()) {
    const auto sequence = std::move(ready_.front());
    ready_.pop_front();
    sequence->is_queued = false;
    enqueue(sequence, now);  // forgets it
  }
  return !ready_.empty();
}

std::optional<SequenceQueue::Clock::time_point> SequenceQueue::next_due() const {
  if (delayed_.empty()) return std::nullopt;
  return delayed_.begin()->first;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
