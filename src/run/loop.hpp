#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include <txinbox/run.hpp>
#include <txinbox/version.hpp>

#include "run/idle_exit.hpp"
#include "run/job_runner.hpp"
#include "run/shared_scheduler.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// One call of `run`: polls the source, and acknowledges the messages that the workers have finished.
class Loop {
 public:
  /// Errors: `Error` invalid_argument for the options.
  Loop(Source& source, const JobRunner& runner, const MessageOf& message_of, const RunOptions& options);

  RunSummary run();

 private:
  using Clock = std::chrono::steady_clock;

  void work_until_end();
  void work();
  void end_pause_if_over() noexcept;
  void iterate(bool may_poll);
  void end_if_idle(bool had_room, bool polled_nothing);
  std::chrono::milliseconds time_to_wait();
  void receive(std::vector<Incoming> incoming);
  void settle();
  void acknowledge_the_rest() noexcept;
  void acknowledge(const Settlement& settlement);
  bool publish_dead_letters();
  void forget_lost();
  void notify_occurrences();
  void notify_status();
  void notify(RunEvent event) const noexcept;

  Source& source_;
  const JobRunner& runner_;
  const MessageOf& message_of_;
  const RunOptions& options_;
  SharedScheduler scheduler_;
  std::atomic<std::size_t> working_ = 0;  ///< The number of workers that have not ended.
  std::string name_;
  bool may_have_lost_ = false;  ///< The source has reported that messages were taken back.
  IdleExit idle_exit_;
  RunEnd end_ = RunEnd::stopped;
  Clock::time_point next_status_ = Clock::now();
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
