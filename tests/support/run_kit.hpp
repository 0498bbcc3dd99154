#pragma once

#include <algorithm>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <soci/soci.h>
#include <txinbox/run.hpp>

#include "support/effects.hpp"

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

/// A handler that adds an effect and records the message. It fails the first `times` times for the messages for whose
/// key `fails` is true.
template <class Fails>
auto failing_at_first(RunLog& log, int times, Fails fails) {
  return [&log, times, fails](soci::session& sql, Delivery& delivery) {
    add_effect(sql, delivery);
    const std::string& key = delivery.message().business_key;
    log.add(key);
    if (fails(key) && log.count(key) <= times) throw std::runtime_error("not yet");
  };
}

/// Runs until the broker has no more messages.
inline RunOptions until_idle() {
  using namespace std::chrono_literals;
  return {.backoff = 2ms, .max_backoff = 20ms, .idle_exit = 30ms};
}

inline std::string numbered(const std::string& prefix, int number) { return prefix + "-" + std::to_string(number); }

}  // namespace txinbox::test
