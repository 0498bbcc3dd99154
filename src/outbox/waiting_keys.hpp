#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The keys whose next message has failed, and the time until which each waits. If a message without a key fails, only
/// this message waits.
class WaitingKeys {
 public:
  using Clock = std::chrono::steady_clock;

  /// A message that waits.
  struct Wait {
    std::string topic;
    Clock::time_point until;
  };

  void add(const std::string& key, std::int64_t row, Wait wait) {
    if (key.empty()) {
      rows_[row] = std::move(wait);
    } else {
      keys_[key] = std::move(wait);
    }
  }

  /// Removes the keys and messages whose wait is over. Returns whether there was one.
  bool remove_due(Clock::time_point now) {
    const auto is_due = [&](const auto& each) { return each.second.until <= now; };
    return std::erase_if(keys_, is_due) + std::erase_if(rows_, is_due) > 0;
  }

  /// Removes the keys and messages that wait because of a message of these topics.
  void remove(const std::vector<std::string>& topics) {
    const auto is_of_them = [&](const auto& each) { return std::ranges::count(topics, each.second.topic) > 0; };
    std::erase_if(keys_, is_of_them);
    std::erase_if(rows_, is_of_them);
  }

  bool contains(const std::string& key) const { return keys_.contains(key); }
  std::size_t size() const noexcept { return keys_.size() + rows_.size(); }

  /// Returns when the next wait ends. Returns `otherwise` if no wait ends before.
  Clock::time_point next(Clock::time_point otherwise) const {
    for (const auto& [key, wait] : keys_) otherwise = std::min(otherwise, wait.until);
    for (const auto& [row, wait] : rows_) otherwise = std::min(otherwise, wait.until);
    return otherwise;
  }

  const std::map<std::string, Wait>& keys() const noexcept { return keys_; }
  const std::map<std::int64_t, Wait>& rows() const noexcept { return rows_; }

 private:
  std::map<std::string, Wait> keys_;
  std::map<std::int64_t, Wait> rows_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
