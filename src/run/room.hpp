#pragma once

#include <algorithm>
#include <cstddef>

#include <txinbox/version.hpp>

#include "run/entry.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// How many messages, and bytes of bodies, `run` holds, and how many more it may hold.
///
/// Messages that wait are counted apart: those without a lane that wait for another try, and all those of paused lanes.
/// The part of them that exceeds `most_waiting` counts with the others.
///
/// @threads one at a time.
class Room {
 public:
  Room(const Amount& most_in_flight, const Amount& most_waiting)
      : most_in_flight_(most_in_flight), most_waiting_(most_waiting) {}

  void add(const Entry& entry) { held_ += entry.amount(); }
  void remove(Entry& entry) {
    set_waiting(entry, false);
    held_ -= entry.amount();
  }

  /// Whether this message waits for another try. It makes no difference for a message with a lane.
  void set_waiting(Entry& entry, bool waits) {
    if (entry.incoming.lane || entry.counts_apart == waits) return;
    entry.counts_apart = waits;
    if (waits) {
      waiting_ += entry.amount();
    } else {
      waiting_ -= entry.amount();
    }
  }

  /// How many more messages may be polled. `paused`: what the paused lanes hold.
  std::size_t left(const Amount& paused) const {
    const Amount used = in_flight(paused);
    if (used.bytes >= most_in_flight_.bytes || used.messages >= most_in_flight_.messages) return 0;
    return most_in_flight_.messages - used.messages;
  }

  /// How much more than half of the room is used. The other half stays for lanes that do not wait.
  Amount excess(const Amount& paused) const {
    const Amount used = in_flight(paused);
    const auto over = [](std::size_t has, std::size_t most) { return has > most / 2 ? has - most / 2 : 0; };
    return {.messages = over(used.messages, most_in_flight_.messages),
            .bytes = over(used.bytes, most_in_flight_.bytes)};
  }

  /// How much more waits than may be counted apart.
  Amount waiting_excess(const Amount& paused) const {
    Amount excess = waiting_;
    excess += paused;
    excess -= apart(paused);
    return excess;
  }

 private:
  Amount apart(const Amount& paused) const {
    return {.messages = std::min(waiting_.messages + paused.messages, most_waiting_.messages),
            .bytes = std::min(waiting_.bytes + paused.bytes, most_waiting_.bytes)};
  }

  Amount in_flight(const Amount& paused) const {
    Amount used = held_;
    used -= apart(paused);
    return used;
  }

  const Amount most_in_flight_;
  const Amount most_waiting_;
  Amount held_;
  Amount waiting_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
