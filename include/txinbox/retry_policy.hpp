#pragma once

#include <chrono>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

/// How `consume` runs a transaction again after a transient error: exponential backoff with full
/// jitter (a random wait between zero and the bound, which doubles each time), after M. Brooker,
/// "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015): competing consumers that wait in
/// step collide in step.
struct RetryPolicy {
  /// Runs in all, at least 1; 1 never retries.
  int max_attempts = 6;

  /// The bound of the first wait. Zero: no wait.
  std::chrono::milliseconds initial_backoff{20};

  /// The bound that the doubling stops at.
  std::chrono::milliseconds max_backoff{2'000};

  /// No new run begins when this much time has passed since `consume` was called. A run in hand is
  /// not cut short.
  std::chrono::milliseconds max_elapsed{30'000};
};

TXINBOX_NAMESPACE_END
}  // namespace txinbox
