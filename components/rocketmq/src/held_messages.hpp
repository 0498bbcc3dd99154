#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <txinbox/version.hpp>

#include "calls.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rocketmq {

/// Corrects the receipt handle of a message whose invisible time was prolonged.
///
/// A proxy inside a broker (RocketMQ 5.3.3, local mode) returns a wrong handle. Like the old handle, it names the first
/// message of the answer in which this message was received. But after the prolongation, the broker keeps this message
/// separately. It answers OK to an acknowledgement with the wrong handle, and still delivers the message again.
///
/// A handle consists of numbers with spaces between them. The first number is the offset of the answer's first message.
/// The eighth number is the message's own offset, which must also be the first one. Other handles are not changed.
inline std::string handle_after_change(const std::string& handle) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= handle.size();) {
    const std::size_t end = std::min(handle.find(' ', begin), handle.size());
    parts.push_back(std::string_view(handle).substr(begin, end - begin));
    begin = end + 1;
  }
  constexpr std::size_t own = 7;
  const auto is_number = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (parts.size() <= own || !is_number(parts[0]) || !is_number(parts[own])) return handle;
  return std::string(parts[own]) + handle.substr(parts[0].size());
}

/// A message that is invisible to other consumers, because this source has it.
///
/// Its receipt handle changes each time that its invisible time is prolonged. The broker answers OK to an
/// acknowledgement with an old handle, and does nothing. So at most one request for a message runs at a time, and
/// each request uses the newest handle.
struct HeldMessage {
  std::string id;
  std::string handle;
  std::string broker;
  int deliveries = 0;
  Clock::time_point expires_at;  ///< The end of its invisible time.
  std::optional<std::uint64_t> lane = {};
  bool is_busy = false;        ///< A request for this message runs.
  bool is_done = false;        ///< `run` has acknowledged it.
  bool is_dead = false;        ///< The broker has it as a dead letter.
  bool is_given_back = false;  ///< The broker must deliver it again.
};

/// The messages that this source holds, by ticket.
class HeldMessages {
 public:
  std::uint64_t add(HeldMessage message) {
    messages_.emplace(++last_ticket_, std::move(message));
    return last_ticket_;
  }

  /// Null if the message is not held any more.
  HeldMessage* find(std::uint64_t ticket) {
    const auto at = messages_.find(ticket);
    return at == messages_.end() ? nullptr : &at->second;
  }

  bool holds(std::uint64_t ticket) const {
    const auto at = messages_.find(ticket);
    return at != messages_.end() && !at->second.is_given_back && Clock::now() < at->second.expires_at;
  }

  void erase(std::uint64_t ticket) { messages_.erase(ticket); }

  auto begin() { return messages_.begin(); }
  auto end() { return messages_.end(); }

  /// Records that no request runs any more, because the connection was lost.
  void forget_requests() {
    for (auto& [ticket, message] : messages_) message.is_busy = false;
  }

  bool is_any_busy() const {
    return std::ranges::any_of(messages_, [](const auto& each) { return each.second.is_busy; });
  }

 private:
  std::map<std::uint64_t, HeldMessage> messages_;
  std::uint64_t last_ticket_ = 0;
};

}  // namespace rocketmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
