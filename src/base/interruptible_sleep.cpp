#include "base/interruptible_sleep.hpp"

#include <condition_variable>
#include <mutex>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

bool sleep_for(std::chrono::nanoseconds time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait_for(lock, stop, time, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
