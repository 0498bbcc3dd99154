#pragma once

#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <string>

namespace txinbox::test {

/// Counts how deliveries ended. Thread-safe.
struct Tally {
  std::atomic<int> keys = 0;
  std::atomic<int> deliveries = 0;  ///< A redelivery counts again.
  std::atomic<int> consumed = 0;
  std::atomic<int> duplicates = 0;
  std::atomic<int> retries = 0;      ///< Runs that txinbox repeated by itself.
  std::atomic<int> redelivered = 0;  ///< Deliveries that ended in an error.
  std::atomic<int> unexpected = 0;   ///< Errors that are neither transient nor the handler's own.

  /// Counts an error by its code.
  void note(const std::exception_ptr&);

  /// All counts as one line of text.
  std::string text() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, int> errors_;
};

}  // namespace txinbox::test
