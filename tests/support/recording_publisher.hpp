#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <txinbox/outbox_relay.hpp>

namespace txinbox::test {

/// A broker that records the messages it gets, in order. Any number of relays may publish to it.
class RecordingPublisher {
 public:
  /// The function that decides the result for a message. By default, the message is confirmed.
  using Answer = std::function<PublishResult(const OutgoingMessage&)>;

  Publisher publisher(Answer answer = {}) {
    return [this, answer = std::move(answer)](std::span<const OutgoingMessage> messages) {
      std::vector<PublishResult> results;
      std::set<std::string> keys;
      for (const OutgoingMessage& message : messages) {
        results.push_back(answer ? answer(message) : PublishResult{});
        if (!message.key.empty() && !keys.insert(message.key).second) same_key_twice_ = true;
      }
      const std::lock_guard lock(mutex_);
      for (std::size_t i = 0; i < messages.size(); ++i) {
        tried_.push_back(messages[i]);
        if (results[i].status == PublishStatus::confirmed) confirmed_.push_back(messages[i]);
      }
      changed_.notify_all();
      return results;
    };
  }

  /// Waits until it has confirmed this many messages, at most a minute. Returns all messages that it has confirmed.
  std::vector<OutgoingMessage> confirmed(std::size_t messages) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::minutes(1), [&] { return confirmed_.size() >= messages; });
    return confirmed_;
  }

  /// The payloads of the confirmed messages, in order.
  std::vector<std::string> payloads(std::size_t messages) {
    std::vector<std::string> all;
    for (const OutgoingMessage& message : confirmed(messages)) all.push_back(message.payload);
    return all;
  }

  /// How many times a message was sent.
  std::size_t tries(const std::string& payload) {
    const std::lock_guard lock(mutex_);
    std::size_t count = 0;
    for (const OutgoingMessage& message : tried_) count += message.payload == payload ? 1U : 0U;
    return count;
  }

  /// Whether one call had two messages of a key.
  bool same_key_twice() const { return same_key_twice_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<OutgoingMessage> tried_, confirmed_;
  std::atomic<bool> same_key_twice_ = false;
};

}  // namespace txinbox::test
