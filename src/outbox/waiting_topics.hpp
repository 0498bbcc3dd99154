#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The topics whose messages fail without a success between the failures, for example because the broker has no such
/// topic.
///
/// Each failed message makes its key wait. If too many keys wait, the relay makes these topics wait as a whole, so that
/// it can publish messages of other topics.
class WaitingTopics {
 public:
  using Clock = std::chrono::steady_clock;

  void confirmed(const std::string& topic) { topics_.erase(topic); }
  void failed(const std::string& topic) { ++topics_[topic].failures; }

  /// Starts a wait for each topic that has had many failures and no success between them. Each wait of a topic is twice
  /// as long as the wait before. Returns the names of these topics.
  std::vector<std::string> begin_waits(Clock::time_point now, std::chrono::milliseconds first,
                                       std::chrono::milliseconds longest) {
    constexpr std::size_t many = 100;
    std::vector<std::string> begun;
    for (auto& [name, topic] : topics_) {
      if (topic.failures < many) continue;
      topic.failures = 0;
      topic.wait = topic.wait.count() == 0 ? first : std::min(longest, 2 * topic.wait);
      topic.until = now + topic.wait;
      begun.push_back(name);
    }
    return begun;
  }

  /// Ends the waits that are over. Returns whether there was one.
  bool remove_due(Clock::time_point now) {
    bool any = false;
    for (auto& [name, topic] : topics_) {
      if (!topic.until || *topic.until > now) continue;
      topic.until.reset();
      any = true;
    }
    return any;
  }

  std::vector<std::string> waiting() const {
    std::vector<std::string> names;
    for (const auto& [name, topic] : topics_) {
      if (topic.until) names.push_back(name);
    }
    return names;
  }

  /// Returns when the next wait ends. Returns `otherwise` if no wait ends before.
  Clock::time_point next(Clock::time_point otherwise) const {
    for (const auto& [name, topic] : topics_) otherwise = std::min(otherwise, topic.until.value_or(otherwise));
    return otherwise;
  }

 private:
  struct Topic {
    std::size_t failures = 0;  ///< The failures since the last success, or since the last wait began.
    std::chrono::milliseconds wait{0};
    std::optional<Clock::time_point> until;
  };

  std::map<std::string, Topic> topics_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
