#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include <txinbox/version.hpp>

#include "run/entry.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The calls that the loop makes next at the broker.
struct Settlement {
  std::vector<EntryPtr> acknowledge = {};  ///< The messages of a lane are in order, without a gap.
  std::vector<std::uint64_t> pause = {};
  std::vector<std::uint64_t> resume = {};
};

/// The lanes that have messages which are not acknowledged, and which of these lanes are paused.
///
/// A lane is *stuck* if its first message waits for a retry. The lanes that are stuck and not paused hold less than
/// half of the messages and of the bytes that may be held. So the other half stays for lanes that are not stuck.
///
/// @threads one at a time; the owner holds a lock.
class Lanes {
 public:
  Lanes(std::size_t max_held, std::size_t max_bytes) : max_held_(max_held), max_bytes_(max_bytes) {}

  /// Adds a message to the end of its lane. The message must have a lane.
  void add(Entry& entry);

  /// Removes a message that the broker has taken back. The broker has taken back the whole lane, so a pause ends.
  void remove_lost(Entry& entry);

  /// Records that this message has changed. The next `settle` examines its lane. The message may have no lane.
  void touch(const Entry& entry);

  /// Removes the messages that may be acknowledged, and decides which lanes are paused and resumed.
  void settle(Settlement& settlement);

  std::size_t paused_messages() const;
  std::size_t paused_bytes() const;

 private:
  void touch(const std::shared_ptr<Lane>& lane);
  void settle(Lane& lane, Settlement& settlement);
  void pause_stuck_lanes(Settlement& settlement);

  const std::size_t max_held_;
  const std::size_t max_bytes_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Lane>> lanes_;
  std::vector<std::shared_ptr<Lane>> touched_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
