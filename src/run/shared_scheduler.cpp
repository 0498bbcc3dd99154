#include "run/shared_scheduler.hpp"

#include <algorithm>
#include <chrono>
#include <variant>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

std::optional<Job> SharedScheduler::take_job(const std::function<bool()>& has_other_work) {
  const Scheduler::Time pause_ends = Scheduler::Time::clock::now() + std::chrono::seconds(1);
  std::unique_lock lock(mutex_);
  while (true) {
    const Scheduler::Time now = Scheduler::Time::clock::now();
    Scheduler::Next next = scheduler_.next(now);
    if (scheduler_.take_put_back()) has_changed_.notify_all();
    if (Job* const job = std::get_if<Job>(&next)) return std::move(*job);
    const auto* const wait = std::get_if<Scheduler::Wait>(&next);
    if (wait == nullptr) return Job();
    std::optional<Scheduler::Time> until = wait->until;
    if (scheduler_.is_paused() || has_other_work()) {
      if (now >= pause_ends) return std::nullopt;
      until = until ? std::min(*until, pause_ends) : pause_ends;
    }
    if (until) {
      has_changed_.wait_until(lock, *until);
    } else {
      has_changed_.wait(lock);
    }
  }
}

void SharedScheduler::finished(const Job& job, JobResult result) {
  {
    const std::lock_guard lock(mutex_);
    scheduler_.finished(job, std::move(result), Scheduler::Time::clock::now());
  }
  has_changed_.notify_all();
}

void SharedScheduler::end(std::exception_ptr error) {
  {
    const std::lock_guard lock(mutex_);
    scheduler_.end(std::move(error));
  }
  has_changed_.notify_all();
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
