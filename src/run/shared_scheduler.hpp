#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <random>
#include <utility>

#include <txinbox/version.hpp>

#include "run/scheduler.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// A scheduler for the thread of the loop and the workers.
///
/// @threads any; one mutex guards everything.
class SharedScheduler {
 public:
  SharedScheduler(const RunOptions& options, std::size_t job_size, int max_attempts, bool can_rewind)
      : scheduler_(options, job_size, max_attempts, can_rewind, std::random_device()()) {}

  /// Calls a member of the scheduler, and returns a copy of what it returns. No other thread uses the scheduler during
  /// this time.
  template <class Member, class... Arguments>
  auto call(Member member, Arguments&&... arguments) {
    const std::lock_guard lock(mutex_);
    return std::invoke(member, scheduler_, std::forward<Arguments>(arguments)...);
  }

  /// Lets workers look for jobs again.
  void wake_workers() { has_changed_.notify_all(); }

  /// Waits for messages. Returns an empty job when no more jobs begin. Returns none after a second without a job, if
  /// then the consumer is paused or `has_other_work` is true.
  ///
  /// @blocking until there is a job, other work, or the end.
  std::optional<Job> take_job(const std::function<bool()>& has_other_work);

  /// Takes back a job that a worker has run, and its results.
  void finished(const Job& job, JobResult result);

  /// Lets no more jobs begin.
  void end(std::exception_ptr error = {});

 private:
  std::mutex mutex_;
  std::condition_variable has_changed_;
  Scheduler scheduler_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
