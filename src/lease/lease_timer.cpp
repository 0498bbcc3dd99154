#include "lease/lease_timer.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

std::shared_ptr<LeaseTimer> LeaseTimer::make() { return make(LeaseClock::steady(), true); }

std::shared_ptr<LeaseTimer> LeaseTimer::make_without_thread(const LeaseClock& clock) { return make(clock, false); }

std::shared_ptr<LeaseTimer> LeaseTimer::make(const LeaseClock& clock, bool has_thread) {
  return {new LeaseTimer(clock, has_thread), [](const LeaseTimer* timer) {
            if (timer->owner_.is_this_one()) delete timer;  // NOLINT(cppcoreguidelines-owning-memory): of a shared_ptr
          }};
}

LeaseTimer::Watch::Watch(LeaseTimer& timer, LeaseTime& time) : timer_(timer), time_(time) {
  const std::lock_guard lock(timer_.mutex_);
  if (timer_.has_thread_ && !timer_.thread_.joinable()) {
    timer_.thread_ = std::jthread([&timer](const std::stop_token& stop) { timer.run(stop); });
  }
  const LeaseTime::Clock::time_point end = time_.ends;
  timer_.entries_.emplace(end, &time_);
  if (end < timer_.wakes_at_) timer_.changed_.notify_one();
}

LeaseTimer::Watch::~Watch() {
  const std::lock_guard lock(timer_.mutex_);
  std::erase_if(timer_.entries_, [this](const Entry& each) { return each.second == &time_; });
}

void LeaseTimer::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    if (entries_.empty()) {
      wakes_at_ = LeaseTime::Clock::time_point::max();
      changed_.wait(lock, stop, [this] { return !entries_.empty(); });
      continue;
    }
    if (check_first(lock)) continue;
    // The thread wakes up at this time even if that lease ends early. One wake-up is cheaper than one for each lease.
    const auto end = entries_.begin()->first;
    wakes_at_ = end;
    changed_.wait_until(lock, stop, end, [this] { return !entries_.empty() && entries_.begin()->first < wakes_at_; });
  }
}

/// Looks at the entry with the earliest end. Returns false if this end has not come.
bool LeaseTimer::check_first(std::unique_lock<std::mutex>& lock) {
  const auto [end, time] = *entries_.begin();
  if (clock_.now() < end) return false;
  entries_.erase(entries_.begin());
  if (const auto extended = time->ends.load(); extended > end) {
    entries_.emplace(extended, time);
    return true;
  }
  std::stop_source over = time->over;  // a copy: the lease can be destroyed while the lock is released
  lock.unlock();
  over.request_stop();
  lock.lock();
  return true;
}

void LeaseTimer::check() {
  std::unique_lock lock(mutex_);
  while (!entries_.empty() && check_first(lock)) {
  }
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
