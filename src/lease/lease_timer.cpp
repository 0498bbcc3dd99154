#include "lease/lease_timer.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

std::shared_ptr<LeaseTimer> LeaseTimer::make() {
  return {new LeaseTimer, [](const LeaseTimer* timer) {
            if (timer->owner_.is_this_one()) delete timer;  // NOLINT(cppcoreguidelines-owning-memory): of a shared_ptr
          }};
}

LeaseTimer::Watch::Watch(LeaseTimer& timer, LeaseTime& time) : timer_(timer), time_(time) {
  const std::lock_guard lock(timer_.mutex_);
  if (!timer_.thread_.joinable()) {
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
    const auto [end, time] = *entries_.begin();
    if (LeaseTime::Clock::now() < end) {
      // The thread wakes up at this time even if that lease ends early. One wake-up is cheaper than one for each lease.
      wakes_at_ = end;
      changed_.wait_until(lock, stop, end, [this] { return !entries_.empty() && entries_.begin()->first < wakes_at_; });
      continue;
    }
    entries_.erase(entries_.begin());
    if (const auto extended = time->ends.load(); extended > end) {
      entries_.emplace(extended, time);
      continue;
    }
    std::stop_source over = time->over;  // a copy: the lease can be destroyed while the lock is released
    lock.unlock();
    over.request_stop();
    lock.lock();
  }
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
