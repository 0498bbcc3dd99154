#include "run/shared_scheduler.hpp"

#include <variant>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

Job SharedScheduler::take_job() {
  std::unique_lock lock(mutex_);
  while (true) {
    Scheduler::Next next = scheduler_.next(Scheduler::Time::clock::now());
    if (scheduler_.take_put_back()) has_changed_.notify_all();
    if (Job* const job = std::get_if<Job>(&next)) return std::move(*job);
    const auto* const wait = std::get_if<Scheduler::Wait>(&next);
    if (wait == nullptr) return {};
    if (wait->until) {
      has_changed_.wait_until(lock, *wait->until);
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
