#include "run/lanes.hpp"

#include <algorithm>
#include <utility>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

/// Whether the first message of the lane waits for another try. Then the later messages of the lane cannot be
/// acknowledged for a long time. After one outage, the next try probably succeeds. After another, other lanes must show
/// whether the database is away.
bool is_stuck(const Lane& lane) {
  if (lane.window.empty()) return false;
  const Entry& first = *lane.window.front();
  return (first.retries > 0 || first.outages > 1) && first.state != Entry::State::done;
}

/// Whether a worker has had the first message of the lane for a long time.
bool is_slow(const Lane& lane, Lanes::Time now) {
  if (lane.window.empty() || now - lane.first_since < Lanes::slow_after) return false;
  return lane.window.front()->state == Entry::State::running;
}

/// Whether the broker may deliver the message again: it has to run, or the inbox will answer the duplicate. Failures
/// that are not counted yet would be lost. A second delivery of a dead letter would publish it again.
bool may_come_again(const Entry& entry) {
  if (entry.state == Entry::State::done) return entry.reason.empty();
  return entry.state == Entry::State::waiting && entry.undecided.empty() && entry.uncounted.empty();
}

}  // namespace

void Lanes::add(Entry& entry, Time now) {
  auto& lane = lanes_[*entry.incoming.lane];
  if (!lane) lane = std::make_shared<Lane>(Lane{.id = *entry.incoming.lane, .first_since = now});
  lane->window.push_back(&entry);
  lane->held += entry.amount();
  if (lane->is_paused) paused_ += entry.amount();
  entry.lane = lane;
  touch(lane);
}

void Lanes::remove_first(Lane& lane, Time now) {
  const Amount amount = lane.window.front()->amount();
  lane.window.front()->lane.reset();
  lane.window.pop_front();
  lane.first_since = now;
  lane.held -= amount;
  if (lane.is_paused) paused_ -= amount;
}

void Lanes::remove_last(Lane& lane) {
  const Amount amount = lane.window.back()->amount();
  lane.window.back()->lane.reset();
  lane.window.pop_back();
  lane.held -= amount;
  if (lane.is_paused) paused_ -= amount;
}

void Lanes::set_paused(Lane& lane, bool paused) {
  if (std::exchange(lane.is_paused, paused) == paused) return;
  if (paused) {
    paused_ += lane.held;
  } else {
    paused_ -= lane.held;
  }
}

std::vector<Entry*> Lanes::remove_lost() {
  std::vector<Entry*> removed;
  for (const auto& [id, lane] : lanes_) {
    const auto first = std::ranges::find_if(lane->window, &Entry::is_lost);
    if (first == lane->window.end()) continue;
    if (lane->is_paused) lost_while_paused_.push_back(id);
    set_paused(*lane, false);
    const auto lost = lane->window.end() - first;
    for (std::ptrdiff_t i = 0; i < lost; ++i) {
      removed.push_back(lane->window.back());
      remove_last(*lane);
    }
    touch(lane);
  }
  std::ranges::reverse(removed);
  return removed;
}

void Lanes::touch(const Entry& entry) {
  if (entry.lane) touch(entry.lane);
}

void Lanes::touch(const std::shared_ptr<Lane>& lane) {
  if (lane->was_touched) return;
  lane->was_touched = true;
  touched_.push_back(lane);
}

void Lanes::settle(Settlement& settlement, Time now) {
  settlement.lost = std::exchange(lost_while_paused_, {});
  for (const auto& lane : std::exchange(touched_, {})) {
    lane->was_touched = false;
    while (!lane->window.empty() && lane->window.front()->state == Entry::State::done) {
      settlement.acknowledge.push_back(*lane->window.front()->held);
      remove_first(*lane, now);
    }
    if (lane->is_paused && lane->window.size() <= lane->resume_at) {
      set_paused(*lane, false);
      settlement.resume.push_back(lane->id);
    }
    if (lane->window.empty()) lanes_.erase(lane->id);
  }
}

/// Pauses as few lanes as possible, the largest ones first: a pause makes Kafka's client discard the messages that it
/// has fetched.
void Lanes::pause(Settlement& settlement, Amount excess, bool slow_too, Time now) {
  const auto holds_up = [&](const Lane& lane) {
    return !lane.is_paused && (is_stuck(lane) || (slow_too && is_slow(lane, now)));
  };
  for (const auto& lane : largest_first(holds_up, excess)) {
    if (excess.is_zero()) return;
    excess.messages -= std::min(excess.messages, lane->held.messages);
    excess.bytes -= std::min(excess.bytes, lane->held.bytes);
    set_paused(*lane, true);
    lane->resume_at = lane->window.size() / 2;
    if (std::erase(settlement.resume, lane->id) == 0) settlement.pause.push_back(lane->id);
  }
}

std::vector<Entry*> Lanes::rewind(Settlement& settlement, Amount excess) {
  std::vector<Entry*> dropped;
  for (const auto& lane : largest_first([](const Lane& each) { return each.is_paused; }, excess)) {
    if (excess.is_zero()) break;
    Entry* first = nullptr;
    while (lane->window.size() > 1 && may_come_again(*lane->window.back())) {
      first = lane->window.back();
      excess.messages -= std::min<std::size_t>(excess.messages, 1);
      excess.bytes -= std::min(excess.bytes, first->incoming.body.size());
      remove_last(*lane);
      dropped.push_back(first);
    }
    if (first == nullptr) continue;
    settlement.rewind.push_back(*first->held);
    lane->resume_at = lane->window.size() / 2;
  }
  return dropped;
}

template <class Predicate>
std::vector<std::shared_ptr<Lane>> Lanes::largest_first(const Predicate& predicate, const Amount& excess) const {
  std::vector<std::shared_ptr<Lane>> found;
  for (const auto& [id, lane] : lanes_) {
    if (predicate(*lane)) found.push_back(lane);
  }
  std::ranges::sort(found, [&](const auto& a, const auto& b) {
    return excess.messages > 0 ? a->held.messages > b->held.messages : a->held.bytes > b->held.bytes;
  });
  return found;
}

std::optional<Lanes::Time> Lanes::next_slow(Time now) const {
  std::optional<Time> next;
  for (const auto& [id, lane] : lanes_) {
    if (lane->is_paused || lane->window.empty() || lane->window.front()->state != Entry::State::running) continue;
    const Time slow = lane->first_since + slow_after;
    if (slow > now && (!next || slow < *next)) next = slow;
  }
  return next;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
