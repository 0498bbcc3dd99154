#include "page/slow_view.hpp"

#include <algorithm>
#include <exception>

#include <txinbox/result.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {

using namespace std::chrono_literals;

SlowView::Result SlowView::get() {
  constexpr auto longest_wait = 200ms;
  std::unique_lock lock(mutex_);
  if (!is_reading_ && Clock::now() >= next_) {
    if (thread_.joinable()) thread_.join();  // it has ended
    thread_ = std::jthread([this] { read(); });
    is_reading_ = true;  // `read` waits for the lock before it ends
  }
  if (value_.is_null()) has_result_.wait_for(lock, longest_wait, [this] { return !is_reading_; });
  const auto age = std::chrono::floor<std::chrono::seconds>(Clock::now() - read_at_);
  return {.value = value_, .age = value_.is_null() ? 0s : age, .error = error_};
}

void SlowView::read() {
  constexpr auto least_pause = 5s;
  constexpr int pauses_for_one_reading = 19;  // so it reads for a twentieth of the time
  const auto begin = Clock::now();
  nlohmann::ordered_json value;
  std::string error;
  try {
    Connection connection = pool_.acquire();
    value = read_(connection);
  } catch (...) {
    error = describe_error(std::current_exception());
  }
  const auto end = Clock::now();
  const std::lock_guard lock(mutex_);
  is_reading_ = false;
  const Clock::duration pause = error.empty() ? pauses_for_one_reading * (end - begin) : Clock::duration(least_pause);
  next_ = end + std::max<Clock::duration>(least_pause, pause);
  error_ = std::move(error);
  if (error_.empty()) {
    value_ = std::move(value);
    read_at_ = end;
  }
  has_result_.notify_all();
}

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
