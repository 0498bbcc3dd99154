#pragma once

/// @file
/// How often and how fast a transaction runs again after a transient error.

#include <chrono>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

/// How `consume` runs a transaction again after a transient error: exponential backoff with full jitter. Each wait is a
/// random time between zero and a bound, and the bound doubles each time. Without random waits, competing consumers
/// would try again at the same time and collide again (M. Brooker, "Exponential Backoff And Jitter", AWS Architecture
/// Blog, 2015).
struct RetryPolicy {
  /// How many runs there are at most, including the first; at least 1. With 1 there is no retry.
  int max_attempts = 6;

  /// The bound of the first wait. Zero: no wait.
  std::chrono::milliseconds initial_backoff{20};

  /// The greatest bound. The bound does not double beyond it.
  std::chrono::milliseconds max_backoff{2'000};

  /// No new run begins when this time has passed since `consume` was called. A run that has begun is not interrupted.
  std::chrono::milliseconds max_elapsed{30'000};
};

TXINBOX_API_END
}  // namespace txinbox
