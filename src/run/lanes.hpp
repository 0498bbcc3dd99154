#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include <txinbox/version.hpp>

#include "run/entry.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The calls that the loop makes next at the broker, in this order.
struct Settlement {
  std::vector<EntryPtr> acknowledge = {};  ///< The messages of a lane are in order, without a gap.
  std::vector<std::uint64_t> lost = {};    ///< Lanes to resume: the broker has taken messages of them back.
  std::vector<std::uint64_t> pause = {};
  std::vector<EntryPtr> rewind = {};  ///< Of paused lanes: the broker delivers each of them again, and what follows it.
  std::vector<std::uint64_t> resume = {};
};

/// The lanes that have messages which are not acknowledged, and which of these lanes are paused.
///
/// A lane is *stuck* if its first message waits for another try. It is *slow* if its first message has been the first
/// for `slow_after`. Other lanes must never wait for these. So when room gets short, they are paused, and what they
/// hold is counted apart. Messages of a paused lane still run.
///
/// @threads one at a time; the owner holds a lock.
class Lanes {
 public:
  using Time = std::chrono::steady_clock::time_point;

  static constexpr std::chrono::milliseconds slow_after{100};

  /// Adds a message to the end of its lane. The message must have a lane.
  void add(Entry& entry, Time now);

  /// Returns the messages that the broker does not wait for any more: those for which `is_lost` is set, and all
  /// messages behind them in their lanes. Removes them from their lanes, and ends the pauses of these lanes.
  std::vector<Entry*> remove_lost();

  /// Records that this message has changed. The next `settle` examines its lane. The message may have no lane.
  void touch(const Entry& entry);

  /// Removes the messages that may be acknowledged, and resumes lanes.
  void settle(Settlement& settlement, Time now);

  /// Pauses stuck lanes, and with `slow_too` slow lanes, until lanes that are not paused hold `excess` less. A paused
  /// lane is resumed when half of what it held is acknowledged.
  void pause(Settlement& settlement, Amount excess, bool slow_too, Time now);

  /// Removes messages that may come again from the ends of paused lanes, until paused lanes hold `excess` less.
  /// The broker delivers them again. Returns them, each lane's last message first. The first message of a lane stays.
  std::vector<Entry*> rewind(Settlement& settlement, Amount excess);

  /// The amount that the paused lanes hold.
  const Amount& paused() const noexcept { return paused_; }

  /// When the next lane that is not paused becomes slow. None if there is none.
  std::optional<Time> next_slow(Time now) const;

 private:
  void touch(const std::shared_ptr<Lane>& lane);
  void remove_first(Lane& lane, Time now);
  void remove_last(Lane& lane);
  void set_paused(Lane& lane, bool paused);
  template <class Predicate>
  std::vector<std::shared_ptr<Lane>> largest_first(const Predicate& predicate, const Amount& excess) const;

  std::unordered_map<std::uint64_t, std::shared_ptr<Lane>> lanes_;
  std::vector<std::shared_ptr<Lane>> touched_;
  std::vector<std::uint64_t> lost_while_paused_;
  Amount paused_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
