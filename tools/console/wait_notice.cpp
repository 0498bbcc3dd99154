#include "console/wait_notice.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "console/output.hpp"
#include "console/progress.hpp"

namespace txinbox::cli {
namespace {

constexpr std::chrono::seconds first{5};

}  // namespace

void WaitNotice::set(std::optional<Clock::time_point> since) {
  const std::lock_guard lock(mutex_);
  since_ = since;
}

// A call does not wake the thread, because most calls are short. So the thread looks each second.
void WaitNotice::watch(const std::stop_token& stop) {
  std::optional<Clock::time_point> call;
  auto next = first;
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    (void)wake_.wait_for(lock, stop, std::chrono::seconds(1), [] { return false; });
    if (since_ != call) {
      call = since_;
      next = first;
    }
    if (!call || Clock::now() - *call < next) continue;
    if (Progress::is_seen()) write_all(STDERR_FILENO, "\r\x1b[K");  // over the line of the progress
    message(
        fmt::format("txinbox: the database has not answered for {} s; another session may hold a lock", next.count()));
    next *= 2;
  }
}

}  // namespace txinbox::cli
