#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include <txinbox/run.hpp>
#include <txinbox/version.hpp>

#include "run/entry.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The sequences that have messages: those that are ready, and those whose first message waits for a retry.
///
/// @threads one at a time; the owner holds a lock.
class SequenceQueue {
 public:
  using Clock = std::chrono::steady_clock;

  explicit SequenceQueue(Ordering order) : order_(order) {}

  /// Returns the sequence that a message belongs to. The caller adds the message to it, then calls `enqueue`.
  std::shared_ptr<Sequence> sequence_for(const Incoming&);

  /// Adds a sequence that no worker has to the ready queue or to the delayed queue. Forgets it if it is empty.
  void enqueue(const std::shared_ptr<Sequence>&, Clock::time_point now);

  /// Forgets a sequence that has no messages any more, and the wait of its first message.
  void forget_if_empty(const std::shared_ptr<Sequence>&);

  /// Takes at most `most` messages that may run now. Their sequences belong to the caller. To return a sequence, the
  /// caller sets `is_running` to false and calls `enqueue`. A suspect is the only message of its job. Messages whose
  /// handler has failed are in other jobs than messages whose handler has not, and the two kinds take turns.
  Job take(Clock::time_point now, std::size_t most);

  /// Whether a message may run now.
  bool is_any_ready(Clock::time_point now);

  /// When the next delayed sequence becomes ready. None if no sequence is delayed.
  std::optional<Clock::time_point> next_due() const;

 private:
  void forget(const std::shared_ptr<Sequence>&);
  void make_ready(std::shared_ptr<Sequence>);
  void enqueue_due(Clock::time_point now);
  void drop_empty(std::deque<std::shared_ptr<Sequence>>&, Clock::time_point now);
  std::deque<std::shared_ptr<Sequence>>& next_queue();

  const Ordering order_;
  std::unordered_map<std::string, std::shared_ptr<Sequence>> sequences_;
  std::deque<std::shared_ptr<Sequence>> ready_;
  std::deque<std::shared_ptr<Sequence>> ready_again_;  ///< The handler of their first message has failed.
  bool is_turn_of_failed_ = false;                     ///< The next job has messages whose handler has failed.
  std::multimap<Clock::time_point, std::shared_ptr<Sequence>> delayed_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
