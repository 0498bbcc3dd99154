#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>

#include <txinbox/outbox_relay.hpp>

namespace txinbox::bench {

/// A relay, whose caller can wait until the relay has removed the rows of a number of messages. The first error ends
/// the wait.
class WatchedRelay {
 public:
  WatchedRelay(Pool& pool, Publisher publisher, RelayOptions options)
      : relay_(pool, std::move(publisher), watched(std::move(options))) {}

  OutboxRelay* operator->() noexcept { return &relay_; }

  /// Waits until this number of messages is published in total.
  void wait_for(long long messages) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return error_ || published_ >= messages; });
    if (error_) std::rethrow_exception(error_);
  }

 private:
  RelayOptions watched(RelayOptions options) {
    options.listeners = {on_event([this](const RelayEvent& event) {
      const std::lock_guard lock(mutex_);
      if (event.type == RelayEventType::published) published_ += static_cast<long long>(event.messages);
      if (event.type == RelayEventType::error && !error_) error_ = event.error;
      changed_.notify_all();
    })};
    return options;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  long long published_ = 0;
  std::exception_ptr error_;
  OutboxRelay relay_;  ///< Must be the last member: its thread uses the others.
};

}  // namespace txinbox::bench
