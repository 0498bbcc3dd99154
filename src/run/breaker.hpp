#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <txinbox/run.hpp>
#include <txinbox/version.hpp>

#include "run/entry.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// A circuit breaker (Nygard, "Release It!"). It finds out whether a handler fails for some messages or for all of
/// them.
///
/// - While the handler works, a failure counts at once.
/// - From the first failure on, and when `run` begins, it is not known whether the handler works. Then a failure is
///   undecided. It counts when the handler has consumed another message, or when no other message can show this.
/// - If the handler has failed for `BreakerOptions::failures` keys in a row, the breaker trips. Then one message at a
///   time is a probe, after a pause that doubles. The first message that is consumed closes the breaker, and no
///   undecided failure counts.
/// - Messages that always fail can be the first ones of all sequences. So after a pause there is a round of probes, for
///   a quarter of the pause and at least a second. A probe that has failed as often as would park it is passed: the
///   next message of its sequence is tried. If that one is consumed, the failures of the one that was passed count: it
///   must not run behind the later one.
///
/// It is off if failures never park a message.
///
/// @threads one at a time.
class Breaker {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// `max_attempts`: how many failures park a message; 0: they never do. `most_held`: how many messages `run` holds.
  Breaker(const BreakerOptions& options, int max_attempts, std::size_t most_held);

  /// Whether a failure of a job that begins now is undecided.
  bool is_undecided() const noexcept { return limit_ > 0 && !works_; }

  /// Whether so many keys have failed that the breaker must trip.
  bool must_trip() const noexcept { return !tripped_ && limit_ > 0 && failed_keys_.size() >= limit_; }

  bool is_tripped() const noexcept { return tripped_; }

  /// No probe begins before this time.
  Time resumes_at() const noexcept { return resumes_at_; }

  /// The wait before the next probe.
  std::chrono::milliseconds pause() const noexcept { return pause_; }

  /// The latest error of the handler.
  const std::exception_ptr& error() const noexcept { return error_; }

  /// Whether a message that has failed now is set aside, and the next one of its sequence runs.
  bool sets_aside(const Entry&, Time now) const noexcept;

  /// The handler has failed for the message of this entry. If its failure is counted already, only its key matters.
  void failed(const EntryPtr&, const std::exception_ptr& error, Time now);

  /// The handler has consumed a message. Returns whether this has closed the breaker.
  bool works(const Entry&);

  void trip(Time now) noexcept;

  /// A probe begins. The first one after a pause begins a round.
  void begin_probe(Time now) noexcept;

  /// A probe has failed that is not set aside. Returns whether the round goes on.
  bool goes_on(Time now) noexcept;

  /// The probes have failed: the next pause is twice as long.
  void end_round(Time now) noexcept;

  /// Removes and returns the messages whose undecided failures count. Those that a worker has are not among them.
  std::vector<EntryPtr> take_decided();

  /// Removes and returns the messages whose undecided failures do not count.
  std::vector<EntryPtr> take_forgiven() { return std::exchange(forgiven_, {}); }

  /// The messages that were set aside.
  std::vector<EntryPtr> set_aside() const;

  /// Removes and returns the messages that were set aside.
  std::vector<EntryPtr> take_set_aside();

  bool has_set_aside() const noexcept;

  /// Messages that were set aside wait no longer than until this time.
  Time gives_up_at() const noexcept { return latest_sign_ + longest_without_sign; }

  /// The database is away, so no message can show whether the handler works.
  void database_is_away(Time now) noexcept { latest_sign_ = now; }

  /// The message has no undecided failures any more.
  void forget(const Entry&);

  /// Forgets the messages that the broker has taken back.
  void forget_lost();

 private:
  bool is_in_round(Time now) const noexcept;

  /// Only messages that neither fail nor are consumed can take longer, such as those that wait for something else.
  static constexpr std::chrono::minutes longest_without_sign{5};

  const BreakerOptions options_;
  const std::size_t max_attempts_;
  const std::size_t limit_;  ///< 0: the breaker is off.
  bool works_ = false;       ///< A message was consumed, and none has failed since then.
  bool tripped_ = false;
  std::chrono::milliseconds pause_;
  Time resumes_at_ = {};
  Time round_began_ = {};
  bool in_round_ = false;
  std::size_t probes_ = 0;             ///< How many probes of the round have failed and were not set aside.
  std::set<std::string> failed_keys_;  ///< The keys that have failed since a message was consumed.
  std::vector<EntryPtr> undecided_;
  Time latest_sign_ = {};           ///< When the handler has failed last.
  std::vector<EntryPtr> decided_;   ///< Their failures count.
  std::vector<EntryPtr> forgiven_;  ///< Their failures do not count.
  std::exception_ptr error_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
