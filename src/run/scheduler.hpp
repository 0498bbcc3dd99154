#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <txinbox/result.hpp>
#include <txinbox/run.hpp>
#include <txinbox/version.hpp>

#include "run/backoff.hpp"
#include "run/breaker.hpp"
#include "run/entry.hpp"
#include "run/lanes.hpp"
#include "run/outages.hpp"
#include "run/room.hpp"
#include "run/sequence_queue.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// An event for the listeners. The thread of the loop sends it.
struct Occurrence {
  RunEventType type;
  EntryPtr entry = {};
  std::string business_key = {};  ///< A copy of the entry's key: a worker may have its message now.
  std::string_view reason = {};   ///< Why it is a dead letter. Not the entry's: a worker may set it now.
  std::exception_ptr error = {};
  std::chrono::milliseconds backoff{0};
};

/// How the messages of one job ended. If `error` is set, or the consumer is paused, none of them ran, and `results` is
/// empty.
struct JobResult {
  std::vector<Result> results = {};
  std::vector<std::size_t> failed_before_handler = {};  ///< As `BatchResults::failed_before_handler`.
  std::exception_ptr error = {};
  bool is_paused = false;  ///< An operator has paused the consumer.
};

/// The messages that the broker has taken back.
struct Lost {
  std::size_t count = 0;
  std::vector<EntryPtr> give_back = {};  ///< Those of them that the source still holds.
};

/// Holds all messages that are not acknowledged. It decides which run next, which wait, and which may be acknowledged.
/// It has no thread, no lock and no clock. `SharedScheduler` has them.
///
/// There are two different orders. A *sequence* is the order in which messages run: a message runs only when all
/// messages in front of it in its sequence are done. A *lane* is the order in which messages are acknowledged: an
/// acknowledgement covers all messages of the lane up to one position.
///
/// Invariants:
/// - A message is acknowledged only after it and all earlier messages of its lane have ended: by an outcome that allows
///   it, or by a dead letter that the broker has confirmed.
/// - At most one worker has messages of a sequence, and they run in their order.
/// - If the broker takes one message of a lane back, the later messages of the lane are given back, too.
/// - Messages that wait, in some lanes or without a lane, never keep a worker from messages of other lanes. They are
///   counted apart, up to `RunOptions::max_waiting`.
/// - At most `max_in_flight` + `max_waiting` messages are held.
/// - With `RunOptions::hold_parked`, no message passes a parked one of its sequence.
/// - After `end`, nothing begins. A dead letter that the broker has not confirmed is not published again: each try can
///   take seconds. The broker delivers its message again.
///
/// @threads one at a time.
class Scheduler {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Nothing can begin before this time. None: before something happens.
  struct Wait {
    std::optional<Time> until;
  };
  /// Nothing begins any more.
  struct End {};
  using Next = std::variant<Job, Wait, End>;

  /// `job_size` is the maximum number of messages in a job. `max_attempts` is that of the consumer, and `can_rewind`
  /// that of the source. `seed` makes the waits random.
  Scheduler(const RunOptions& options, std::size_t job_size, int max_attempts, bool can_rewind, std::uint32_t seed);

  /// Says what a worker without a job does next.
  Next next(Time now);

  /// Whether messages can run again since the last call, so that other workers must look for jobs.
  bool take_put_back() noexcept { return std::exchange(has_put_back_, false); }

  /// Takes back a job that a worker has run, and its results.
  void finished(const Job& job, JobResult result, Time now);

  /// Whether nothing begins until `unpause`, because an operator has paused the consumer.
  bool is_paused() const noexcept { return is_paused_; }
  void unpause();

  /// Adds a message that has to run.
  void add(Incoming incoming, Message message, Time now);

  /// Adds a message that cannot run, because its key could not be read.
  void add_dead_letter(Incoming incoming, std::string_view reason, std::exception_ptr error, Time now);

  /// How many more messages may be polled.
  std::size_t room() const { return is_paused_ ? 0 : room_.left(lanes_.paused()); }

  /// Whether no message is held.
  bool is_empty() const noexcept { return held_.empty(); }

  /// Forgets the messages that the broker has taken back: those for which `is_held` is false, and the later ones of
  /// their lanes.
  Lost forget_lost(const std::function<bool(const Incoming&)>& is_held);

  /// Removes and returns the dead letters that are due. For each of them, the caller calls one of the two functions
  /// below.
  std::vector<EntryPtr> take_dead_letters(Time now);
  void dead_letter_confirmed(const EntryPtr&);
  void dead_letter_failed(const EntryPtr&, std::exception_ptr error, Time now);

  /// Returns the calls that the loop makes next at the broker.
  Settlement take_settlement(Time now);

  std::vector<Occurrence> take_occurrences();

  /// When `take_dead_letters` or `take_settlement` may have something to do although nothing happens. None: never.
  std::optional<Time> next_due(Time now) const;

  /// Lets no more jobs begin. If it is called more than once, the first error is kept.
  void end(std::exception_ptr error = {});

  bool has_ended() const noexcept { return has_ended_; }
  const std::exception_ptr& error() const noexcept { return error_; }
  const RunSummary& summary() const noexcept { return summary_; }

 private:
  EntryPtr hold(Incoming incoming, Time now);
  void release(const EntryPtr&);
  void drop(Entry&);
  void give_back(const Job&, Time now);
  bool has_free_worker() const noexcept { return running_ < workers_; }

  void decide(const EntryPtr&, Result&, Time now);
  void done(const EntryPtr&);
  void becomes_dead_letter(const EntryPtr&, std::string_view reason, std::exception_ptr error, Time now);
  void runs_again(const EntryPtr&, const Result&, Time now);
  void waits_after_failure(const EntryPtr&, const Result&, Time now);
  void waits(const EntryPtr&, const Result&, std::chrono::milliseconds wait, Time now);
  void nothing_ran(const std::exception_ptr&);
  void outage(const Job&, const std::exception_ptr&, Time now);

  std::optional<Time> next_job_due(Time now) const;
  Job take_job(Time now);
  Job take_probe(Time now);
  void end_round(Time now);
  bool can_show_soon(Time now) const;
  bool others_can_show(const Entry&) const;
  static void count(Entry&);
  void count(const std::vector<EntryPtr>&, Time now);
  void forgive(const std::vector<EntryPtr>&, Time now);
  void trip(Time now);
  void put_back(const EntryPtr&, Time now);
  static void insert(Entry&);
  void set_aside(const EntryPtr&);
  bool keeps_order(const Entry&) const noexcept;
  void waits_for_operator(const EntryPtr&, const Result&, Time now);
  static void leaves_hold(Entry&);

  const std::size_t job_size_;
  const std::size_t workers_;
  const bool can_rewind_;
  const bool hold_parked_;
  Backoff backoff_;
  Outages outages_;
  Breaker breaker_;

  std::list<EntryPtr> held_;
  Room room_;
  Lanes lanes_;
  SequenceQueue queue_;
  std::multimap<Time, EntryPtr> dead_letters_;
  std::vector<EntryPtr> done_without_lane_;
  std::vector<Occurrence> occurrences_;

  std::uint64_t held_so_far_ = 0;  ///< It numbers the messages.
  std::size_t running_ = 0;        ///< How many jobs workers have.
  bool is_paused_ = false;
  bool has_put_back_ = false;  ///< Since the last `take_put_back`, messages that were set aside can run again.

  bool has_ended_ = false;
  std::exception_ptr error_;
  RunSummary summary_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
