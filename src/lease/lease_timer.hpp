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

#include "base/own_process.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The time of one lease: it may be extended until it is over, and is told once when it is.
struct LeaseTime {
  using Clock = std::chrono::steady_clock;
  explicit LeaseTime(Clock::time_point end) : ends(end) {}

  std::atomic<Clock::time_point> ends;
  std::stop_source over;
};

/// Sets `LeaseTime::over` when the time is over. One thread for all leases of a consumer, which waits for the clock
/// and for nothing else: a renewal that hangs in the database cannot delay it.
///
/// What is registered with the stop token runs on this thread.
class LeaseTimer {
 public:
  /// A child of fork() has a copy without the thread, which is neither used nor ended there: it is leaked.
  static std::shared_ptr<LeaseTimer> make();
  LeaseTimer(const LeaseTimer&) = delete;
  LeaseTimer& operator=(const LeaseTimer&) = delete;

  /// Watches a time as long as this lives.
  class Watch {
   public:
    /// Errors: `std::system_error` when there can be no thread.
    Watch(LeaseTimer&, LeaseTime&);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    LeaseTimer& timer_;
    LeaseTime& time_;
  };

 private:
  LeaseTimer() = default;
  ~LeaseTimer() = default;

  using Entry = std::pair<LeaseTime::Clock::time_point, LeaseTime*>;

  void run(const std::stop_token& stop);

  const OwnProcess owner_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::set<Entry> entries_;  ///< By the end that each had when it was last looked at, or later.
  std::jthread thread_;      ///< Starts with the first watch. The last member: it uses the others.
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
