#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <thread>
#include <utility>

#include <txinbox/version.hpp>

#include "base/process.hpp"
#include "lease/lease_clock.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The end of one lease. A renewal can move it. When the time comes, the timer sets `over`, once.
struct LeaseTime {
  using Clock = LeaseClock::Clock;
  explicit LeaseTime(Clock::time_point end) : ends(end) {}

  std::atomic<Clock::time_point> ends;
  std::stop_source over;
};

/// Sets `LeaseTime::over` when a lease expires.
///
/// One thread serves all leases of a consumer. It waits only for the clock, so a renewal that hangs in the database
/// cannot delay it. Callbacks on the stop token run on this thread.
class LeaseTimer {
 public:
  /// Makes a timer. A child of fork() has a copy without the thread; the copy is leaked, neither used nor destroyed.
  static std::shared_ptr<LeaseTimer> make();

  /// Makes a timer with another clock and without a thread: only `check` sets `LeaseTime::over`. It is for tests.
  static std::shared_ptr<LeaseTimer> make_without_thread(const LeaseClock&);

  LeaseTimer(const LeaseTimer&) = delete;
  LeaseTimer& operator=(const LeaseTimer&) = delete;

  /// The clock of the leases. It lives at least as long as the timer.
  const LeaseClock& clock() const noexcept { return clock_; }

  /// Sets `LeaseTime::over` of each lease that has expired.
  void check();

  /// Watches a lease's time while this object lives.
  class Watch {
   public:
    /// Errors: `std::system_error` if the thread cannot be started.
    Watch(LeaseTimer&, LeaseTime&);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    LeaseTimer& timer_;
    LeaseTime& time_;
  };

 private:
  LeaseTimer(const LeaseClock& clock, bool has_thread) : clock_(clock), has_thread_(has_thread) {}
  ~LeaseTimer() = default;

  using Entry = std::pair<LeaseTime::Clock::time_point, LeaseTime*>;

  static std::shared_ptr<LeaseTimer> make(const LeaseClock&, bool has_thread);
  void run(const std::stop_token& stop);
  bool check_first(std::unique_lock<std::mutex>& lock);

  const LeaseClock& clock_;
  const bool has_thread_;
  const OwnProcess owner_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::set<Entry> entries_;  ///< Sorted by the end at the last check; a renewal may have moved it since.
  LeaseTime::Clock::time_point wakes_at_ = LeaseTime::Clock::time_point::max();  ///< The time at which the thread wakes
                                                                                 ///< up.
  std::jthread thread_;  ///< Starts with the first watch. Must be the last member: it uses the others.
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
