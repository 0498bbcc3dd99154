#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/result.hpp>
#include <txinbox/run.hpp>
#include <txinbox/version.hpp>

#include "run/backoff.hpp"
#include "run/entry.hpp"
#include "run/lanes.hpp"
#include "run/sequence_queue.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// An event for the observer. The thread of the loop sends it.
struct Occurrence {
  RunEventType type;
  EntryPtr entry = {};
  std::string business_key = {};  ///< A copy of the entry's key: a worker may have its message now.
  std::exception_ptr error = {};
  std::chrono::milliseconds backoff{0};
};

/// How the messages of one job ended. If `error` is set, none of them ran, and `results` is empty.
struct JobResult {
  std::vector<Result> results = {};
  std::exception_ptr error = {};
};

/// Holds all messages that are not acknowledged. It decides which run next, which wait, and which may be acknowledged.
///
/// The thread of the loop adds messages and takes those that are done. Workers take jobs and return their results.
///
/// There are two different orders. A *sequence* is the order in which messages run: a message runs only when all
/// messages in front of it in its sequence are done. A *lane* is the order in which messages are acknowledged: an
/// acknowledgement covers all messages of the lane up to one position.
///
/// @threads any; one mutex guards everything.
class Scheduler {
 public:
  using Clock = std::chrono::steady_clock;

  /// `job_size` is the maximum number of messages in a job.
  Scheduler(const RunOptions& options, std::size_t job_size);

  /// Adds a message that has to run. The caller then calls `wake_workers`.
  void add(Incoming incoming, Message message);

  /// Adds a message that cannot run, because it has no key.
  void add_dead_letter(Incoming incoming, std::string_view reason, std::exception_ptr error);

  void wake_workers() { has_work_.notify_all(); }

  /// How many more messages may be polled.
  std::size_t room() const;

  /// Whether no message is held.
  bool is_empty() const {
    const std::lock_guard lock(mutex_);
    return held_.empty();
  }

  /// Forgets the messages that the broker has taken back. Returns how many there were.
  std::size_t forget_lost(const Source& source);

  /// Removes and returns the dead letters that are due. For each of them, the caller calls one of the two functions
  /// below.
  std::vector<EntryPtr> take_dead_letters();
  void dead_letter_confirmed(const EntryPtr&);
  void dead_letter_failed(const EntryPtr&, std::exception_ptr error);

  /// Returns the calls that the loop makes next at the broker.
  Settlement take_settlement();

  std::vector<Occurrence> take_occurrences();

  /// When the next dead letter is due. None if there is no dead letter.
  std::optional<Clock::time_point> next_dead_letter() const;

  /// Lets no more jobs begin. If it is called more than once, the first error is kept.
  void end(std::exception_ptr error = {});

  bool has_ended() const {
    const std::lock_guard lock(mutex_);
    return has_ended_;
  }
  std::exception_ptr error() const {
    const std::lock_guard lock(mutex_);
    return error_;
  }
  RunSummary summary() const {
    const std::lock_guard lock(mutex_);
    return summary_;
  }

  /// Waits for messages. Returns an empty job after `end`.
  Job take_job();

  /// Takes back a job that a worker has run, and its results.
  void finish(const Job& job, JobResult result);

 private:
  EntryPtr hold(Incoming incoming);
  void release(const EntryPtr&);
  void give_back(const Job&);

  void decide(const EntryPtr&, Result&);
  void done(const EntryPtr&);
  void becomes_dead_letter(const EntryPtr&, std::string_view reason, std::exception_ptr error);
  void runs_again(const EntryPtr&, const Result&);
  void nothing_ran(const std::exception_ptr&);
  void database_unavailable(const std::exception_ptr&);
  void end_locked(std::exception_ptr error);

  const std::size_t job_size_;
  const std::size_t max_held_;
  const std::size_t max_bytes_;
  Backoff backoff_;

  mutable std::mutex mutex_;
  std::condition_variable has_work_;
  std::list<EntryPtr> held_;
  std::size_t bytes_ = 0;
  Lanes lanes_;
  SequenceQueue queue_;
  std::multimap<Clock::time_point, EntryPtr> dead_letters_;
  std::vector<EntryPtr> done_without_lane_;
  std::vector<Occurrence> occurrences_;
  int outages_ = 0;
  Clock::time_point blocked_until_ = {};
  bool has_ended_ = false;
  std::exception_ptr error_;
  RunSummary summary_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
