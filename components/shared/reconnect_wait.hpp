#pragma once

#include <algorithm>
#include <chrono>
#include <random>

namespace txinbox::component {

/// When a client that has lost its connection tries again. The wait doubles with each failure, from 200 ms up to a
/// limit. A random part of up to one half is taken off, so that clients of the same broker do not all come at once.
class ReconnectWait {
 public:
  using Clock = std::chrono::steady_clock;

  explicit ReconnectWait(std::chrono::milliseconds longest) : longest_(longest) {}

  /// The connection was lost, or could not be made.
  void failed(Clock::time_point now) {
    wait_ = std::clamp(wait_ * 2, std::chrono::milliseconds(200), longest_);
    std::uniform_int_distribution<std::chrono::milliseconds::rep> half(0, wait_.count() / 2);
    next_try_ = now + wait_ - std::chrono::milliseconds(half(random_));
  }

  /// The connection works. The next wait is a short one.
  void reset() noexcept { wait_ = {}; }

  /// Whether nothing has failed since `reset`.
  bool is_reset() const noexcept { return wait_.count() == 0; }

  Clock::time_point next_try() const noexcept { return next_try_; }

 private:
  const std::chrono::milliseconds longest_;
  std::chrono::milliseconds wait_{};
  Clock::time_point next_try_{};
  std::minstd_rand random_{std::random_device()()};
};

}  // namespace txinbox::component
