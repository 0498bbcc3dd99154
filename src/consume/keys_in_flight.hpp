#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_set>
#include <utility>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The keys that deliveries of one consumer are working on, in this process. A second delivery of such a key gets its
/// answer without the database. Thread-safe.
class KeysInFlight {
 public:
  using Clock = std::chrono::steady_clock;

  /// While this object exists, no other delivery can have the key.
  class Turn {
   public:
    Turn(KeysInFlight& keys, std::string key) : keys_(&keys), key_(std::move(key)) {}
    Turn(Turn&& other) noexcept : keys_(std::exchange(other.keys_, nullptr)), key_(std::move(other.key_)) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (keys_ != nullptr) keys_->leave(key_);
    }

   private:
    KeysInFlight* keys_;
    std::string key_;
  };

  /// Waits until no other delivery has the key. Returns none if another one still has it at `give_up`, or if a stop is
  /// requested.
  std::optional<Turn> enter(const std::string& key, Clock::time_point give_up, const std::stop_token& stop);

 private:
  void leave(const std::string& key) noexcept;

  std::mutex mutex_;
  std::condition_variable_any left_;
  std::unordered_set<std::string> keys_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
