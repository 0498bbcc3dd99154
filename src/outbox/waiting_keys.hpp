#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The keys whose next message has failed, with the time until which they wait. A message without a key waits alone.
class WaitingKeys {
 public:
  using Clock = std::chrono::steady_clock;

  void add(const std::string& key, std::int64_t row, Clock::time_point until) {
    if (key.empty()) {
      rows_[row] = until;
    } else {
      keys_[key] = until;
    }
  }

  /// Removes those whose time is over. Returns whether there was one.
  bool remove_due(Clock::time_point now) {
    const auto is_due = [&](const auto& each) { return each.second <= now; };
    return std::erase_if(keys_, is_due) + std::erase_if(rows_, is_due) > 0;
  }

  void clear() noexcept {
    keys_.clear();
    rows_.clear();
  }

  bool contains(const std::string& key) const { return keys_.contains(key); }
  std::size_t size() const noexcept { return keys_.size() + rows_.size(); }

  /// When the next one is due; `otherwise` if none is due before.
  Clock::time_point next(Clock::time_point otherwise) const {
    for (const auto& [key, until] : keys_) otherwise = std::min(otherwise, until);
    for (const auto& [row, until] : rows_) otherwise = std::min(otherwise, until);
    return otherwise;
  }

  const std::map<std::string, Clock::time_point>& keys() const noexcept { return keys_; }
  const std::map<std::int64_t, Clock::time_point>& rows() const noexcept { return rows_; }

 private:
  std::map<std::string, Clock::time_point> keys_;
  std::map<std::int64_t, Clock::time_point> rows_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
