#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <txinbox/run.hpp>

#include "run/scheduler.hpp"

namespace txinbox::test {

/// The fate of a message each time it runs.
enum class Fate {
  good,       ///< It is consumed.
  fails,      ///< Its handler throws.
  postponed,  ///< Its handler asks for a later time.
  rejected,   ///< It becomes a dead letter.
  poison,     ///< Each job that contains it fails as in an outage.
};

/// A broker, workers and a clock for a `Scheduler`. It does what the scheduler says, and checks that the scheduler says
/// nothing wrong.
class SchedulerWorld {
 public:
  using Time = detail::Scheduler::Time;
  using Id = std::pair<std::size_t, std::size_t>;  ///< A message: its lane, and its place in the lane.

  /// `lanes`: 0 makes a queue, whose messages have no order. `per_lane`: how many messages each lane has.
  /// `parks_after`: so many failures of its handler park a message; 0: they never do.
  SchedulerWorld(std::size_t lanes, std::size_t per_lane, const RunOptions& options, std::size_t job_size,
                 bool can_rewind = false, std::uint32_t seed = 1, int parks_after = 0);

  /// A few messages in flight, and short waits.
  static RunOptions options_of_test();

  // The acts of the loop. Each returns whether it has done something.
  bool poll(std::size_t most = 1'000'000);
  bool settle();
  bool publish_dead_letters();

  /// A free worker takes a job. Returns false if there is none.
  bool begin_job();
  /// The oldest job ends, or the one with this number.
  bool end_job(std::size_t number = 0);
  std::size_t running() const { return jobs_.size(); }
  bool has_lanes() const { return has_lanes_; }

  /// Does all of the above once.
  bool turn();

  /// Takes turns for this time.
  void run_for(std::chrono::milliseconds time);

  // The events that can happen.
  void lose(const Id& id);        ///< The broker delivers this message again, because the source has lost it.
  void revoke(std::size_t lane);  ///< The broker takes the lane back, and gives it to this source again.
  std::optional<Id> held(std::size_t number) const;  ///< A message that the source holds.

  // With `RunOptions::hold_parked`: what an operator does with a parked message.
  void retry(const Id& id);
  void discard(const Id& id);

  struct Times {
    Fate fate;
    int times = 1'000'000;  ///< So often. Then the message is good.
  };
  std::map<Id, Times> fates;    ///< The fates that are not good.
  std::set<Id> held_elsewhere;  ///< Messages whose proven failures cannot be counted: another delivery has their keys.
  std::map<Id, int> lost_counts;  ///< So often, the connection ends when their proven failures are to be counted.
  std::set<Id> endless;           ///< Messages whose handlers do not end until they are removed from here.
  bool database_is_down = false;
  bool handler_works = true;                     ///< Otherwise it throws for each message.
  std::chrono::milliseconds job_time{0};         ///< How long a job takes.
  std::chrono::milliseconds postponed_for{500};  ///< The delay of `Fate::postponed`.
  int max_attempts = 1'000'000;                  ///< So many proven failures park a message.
  bool refuses_dead_letters = false;

  /// How many messages of the lane are acknowledged.
  std::size_t acknowledged(std::size_t lane) const;
  std::size_t acknowledged_in_all() const;
  int runs(const Id& id) const;       ///< How often its handler has run.
  std::map<Id, int> proven_failures;  ///< How many errors as of an outage count as its failures.
  std::map<Id, int> failures;         ///< How many failures of its handler the consumer has counted.
  std::set<Id> dead;                  ///< Its dead letters.
  std::set<Id> parked;                ///< With `RunOptions::hold_parked`: what waits for an operator.
  bool operator_retries = false;      ///< An operator lets each parked message run again when it is tried.
  std::vector<RunEventType> events;

  std::size_t pauses = 0;
  std::size_t most_held = 0;  ///< The most messages that the scheduler has held.
  Time now{std::chrono::hours(1)};
  detail::Scheduler scheduler;

  /// The defect that was found. Empty if there is none.
  const std::string& problem() const noexcept { return problem_; }

 private:
  struct Lane {
    std::size_t next = 0;  ///< The next message that the broker delivers.
    std::size_t acknowledged = 0;
    bool is_paused = false;
  };

  void deliver(const Id& id);
  void check_order(const detail::Job& job);
  void acknowledge(const Incoming& incoming);
  detail::JobResult result_of(const detail::Job& job);
  Result result_of(detail::Entry& entry);
  std::optional<Result> count_failures(detail::Entry& entry);
  Result failed(detail::Entry& entry);
  Result park(const Id& id, std::exception_ptr error);
  void check_not_passed(const detail::Entry& entry);
  Fate fate_of(const Id& id) const;
  std::string sequence_of(const Incoming& incoming) const;
  static Id id_of(const Incoming& incoming);

  /// The key that orders messages at the broker: two keys alternate in each lane.
  static std::string key_of(std::size_t place);
  bool is_held(const Incoming& incoming) const { return held_.contains(incoming.ticket); }
  void wrong(std::string text);

  const RunOptions options_;
  const int parks_after_;
  const std::size_t job_size_;
  const bool has_lanes_;
  const std::size_t per_lane_;
  std::vector<Lane> lanes_;
  std::deque<std::size_t> queue_;          ///< Without lanes: what the broker delivers.
  std::map<std::uint64_t, Id> held_;       ///< The messages that the source holds, by ticket.
  std::map<Id, std::uint64_t> ticket_of_;  ///< The latest delivery of each message.
  std::map<Id, std::string> keys_;
  std::optional<Time> sleeps_until_;  ///< The free workers wait until this time, or until something happens.
  std::set<Id> decided_;              ///< Messages that later messages of their sequence do not wait for any more.
  std::set<Id> ended_;                ///< Messages that may be acknowledged.
  std::set<Id> consumed_;
  bool has_lost_ = false;  ///< The broker has delivered a message again.
  std::set<Id> aside_;     ///< Messages that have failed often, and the handler did not work for others.
  std::set<Id> done_;      ///< Messages that are acknowledged.
  std::set<Id> discarded_;
  std::map<Id, int> runs_;
  std::deque<detail::Job> jobs_;
  std::uint64_t tickets_ = 0;
  std::string problem_;
};

}  // namespace txinbox::test
