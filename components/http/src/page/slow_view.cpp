#include "page/slow_view.hpp"

#include <algorithm>
#include <exception>

#include <txinbox/result.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {

using namespace std::chrono_literals;

SlowView::Result SlowView::get() {
  constexpr auto later_wait = 200ms;
  std::unique_lock lock(mutex_);
  const bool begins = !is_reading_ && Clock::now() >= next_;
  if (begins) {
    if (thread_.joinable()) thread_.join();  // it has ended
    has_expired_ = false;
    thread_ = std::jthread([this] { read(); });
    is_reading_ = true;  // `read` waits for the lock before it ends
  }
  if (begins || value_.is_null()) {
    has_result_.wait_for(lock, value_.is_null() ? times_.first_wait : later_wait, [this] { return !is_reading_; });
  }
  const auto age = std::chrono::floor<std::chrono::seconds>(Clock::now() - read_at_);
  return {.value = value_, .age = value_.is_null() ? 0s : age, .error = error_};
}

void SlowView::expire() {
  const std::lock_guard lock(mutex_);
  has_expired_ = true;
  next_ = {};
}

void SlowView::read() {
  constexpr auto pause_after_error = 5s;
  constexpr int pauses_for_one_reading = 49;  // so it reads for a fiftieth of the time
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
  const Clock::duration pause = error.empty() ? pauses_for_one_reading * (end - begin) : pause_after_error;
  if (!has_expired_ || !error.empty()) next_ = end + std::max<Clock::duration>(times_.least_pause, pause);
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
