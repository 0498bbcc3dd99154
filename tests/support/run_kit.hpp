#pragma once

#include <algorithm>
#include <chrono>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <txinbox/run.hpp>

namespace txinbox::test {

/// Makes the body the business key.
inline Message body_is_key(const Incoming& incoming) {
  return {.business_key = std::string(incoming.body), .message_id = std::string(incoming.id)};
}

/// Which handlers ran, in which order.
class RunLog {
 public:
  void add(std::string key) {
    const std::lock_guard lock(mutex_);
    keys_.push_back(std::move(key));
  }
  std::vector<std::string> keys() const {
    const std::lock_guard lock(mutex_);
    return keys_;
  }
  long count(const std::string& key) const {
    const std::lock_guard lock(mutex_);
    return std::count(keys_.begin(), keys_.end(), key);
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> keys_;
};

/// Runs until the broker has no more messages.
inline RunOptions until_idle() {
  using namespace std::chrono_literals;
  return {.backoff = 2ms, .max_backoff = 20ms, .idle_exit = 30ms};
}

inline std::string numbered(const std::string& prefix, int number) { return prefix + "-" + std::to_string(number); }

}  // namespace txinbox::test
