#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include <txinbox/source.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace kafka {

/// The messages that arrived when `run` had no room. The client must be polled also then, and each poll may return a
/// message.
///
/// A pause of the partitions would avoid this. But it makes the client discard the messages that it has fetched, up to
/// 64 MB, for each batch whose handlers take longer than a second. So the first messages are kept here instead.
class KeptMessages {
 public:
  bool is_full() const { return messages_.size() >= most_messages || bytes_ >= most_bytes; }

  void add(Incoming incoming) {
    bytes_ += incoming.body.size();
    messages_.push_back(std::move(incoming));
  }

  /// Removes the messages of a lane.
  void forget(std::uint64_t lane) {
    std::erase_if(messages_, [&](const Incoming& each) {
      if (each.lane != lane) return false;
      bytes_ -= each.body.size();
      return true;
    });
  }

  void clear() {
    messages_.clear();
    bytes_ = 0;
  }

  /// Moves messages to the end of `taken`, until it has `max`. Skips messages for which `must_wait` returns true.
  void take(std::size_t max, std::vector<Incoming>& taken, const std::function<bool(const Incoming&)>& must_wait) {
    for (auto each = messages_.begin(); each != messages_.end() && taken.size() < max;) {
      if (must_wait(*each)) {
        ++each;
        continue;
      }
      bytes_ -= each->body.size();
      taken.push_back(std::move(*each));
      each = messages_.erase(each);
    }
  }

 private:
  static constexpr std::size_t most_messages = 128;
  static constexpr std::size_t most_bytes = 4UL * 1024 * 1024;

  std::deque<Incoming> messages_;
  std::size_t bytes_ = 0;
};

}  // namespace kafka
TXINBOX_NAMESPACE_END
}  // namespace txinbox
