#include "run/sequence_queue.hpp"

#include <utility>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

std::shared_ptr<Sequence> SequenceQueue::sequence_for(const Incoming& incoming) {
  const bool by_key = order_ == Order::key;
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

void SequenceQueue::enqueue(const std::shared_ptr<Sequence>& sequence) {
  if (sequence->is_queued || sequence->is_running) return;
  if (sequence->waiting.empty()) {
    if (!sequence->id.empty()) sequences_.erase(sequence->id);
    return;
  }
  sequence->is_queued = true;
  if (sequence->not_before > Clock::now()) {
    delayed_.emplace(sequence->not_before, sequence);
  } else {
    ready_.push_back(sequence);
  }
}

void SequenceQueue::enqueue_due(Clock::time_point now) {
  while (!delayed_.empty() && delayed_.begin()->first <= now) {
    ready_.push_back(std::move(delayed_.begin()->second));
    delayed_.erase(delayed_.begin());
  }
}

Job SequenceQueue::take(Clock::time_point now, std::size_t most) {
  enqueue_due(now);
  Job job;
  while (!ready_.empty() && job.size() < most) {
    const auto sequence = std::move(ready_.front());
    ready_.pop_front();
    sequence->is_queued = false;
    while (!sequence->waiting.empty() && job.size() < most) {
      Entry& entry = *sequence->waiting.front();
      sequence->waiting.pop_front();
      entry.state = Entry::State::running;
      sequence->is_running = true;
      job.push_back(*entry.held);
    }
    enqueue(sequence);  // forgets it if it is empty
  }
  return job;
}

std::optional<SequenceQueue::Clock::time_point> SequenceQueue::next_due() const {
  if (delayed_.empty()) return std::nullopt;
  return delayed_.begin()->first;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
