#include "run/lanes.hpp"

#include <algorithm>
#include <utility>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

/// The maximum number of paused lanes. RocketMQ has a lane for each message group. If all groups fail, this limits how
/// many messages are held.
constexpr std::ptrdiff_t most_paused = 1'000;

/// Whether the first message of the lane waits for a retry. Then the later messages of the lane cannot be acknowledged
/// for a long time.
bool is_stuck(const Lane& lane) {
  if (lane.window.empty()) return false;
  const Entry& first = *lane.window.front();
  return first.failures > 0 && first.state != Entry::State::done;
}

}  // namespace

void Lanes::add(Entry& entry) {
  auto& lane = lanes_[*entry.incoming.lane];
  if (!lane) lane = std::make_shared<Lane>(Lane{.id = *entry.incoming.lane, .window = {}});
  lane->window.push_back(&entry);
  lane->bytes += entry.incoming.body.size();
  entry.lane = lane;
  touch(lane);
}

void Lanes::remove_lost(Entry& entry) {
  if (!entry.lane) return;
  std::erase(entry.lane->window, &entry);
  entry.lane->bytes -= entry.incoming.body.size();
  entry.lane->is_paused = false;
  touch(std::exchange(entry.lane, nullptr));
}

void Lanes::touch(const Entry& entry) {
  if (entry.lane) touch(entry.lane);
}

void Lanes::touch(const std::shared_ptr<Lane>& lane) {
  if (lane->was_touched) return;
  lane->was_touched = true;
  touched_.push_back(lane);
}

void Lanes::settle(Settlement& settlement) {
  if (touched_.empty()) return;
  for (const auto& lane : std::exchange(touched_, {})) {
    lane->was_touched = false;
    settle(*lane, settlement);
  }
  pause_stuck_lanes(settlement);
}

void Lanes::settle(Lane& lane, Settlement& settlement) {
  while (!lane.window.empty() && lane.window.front()->state == Entry::State::done) {
    const EntryPtr& first = *lane.window.front()->held;
    lane.bytes -= first->incoming.body.size();
    settlement.acknowledge.push_back(first);
    lane.window.pop_front();
  }
  if (lane.is_paused && (!is_stuck(lane) || lane.window.size() < lane.resume_below)) {
    lane.is_paused = false;
    settlement.resume.push_back(lane.id);
  }
  if (lane.window.empty()) lanes_.erase(lane.id);
}

/// Pauses as few lanes as possible, the largest ones first: a pause makes Kafka's client discard the messages that it
/// has fetched.
void Lanes::pause_stuck_lanes(Settlement& settlement) {
  std::vector<Lane*> stuck;
  std::size_t messages = 0;
  std::size_t bytes = 0;
  for (const auto& [id, lane] : lanes_) {
    if (lane->is_paused || !is_stuck(*lane)) continue;
    stuck.push_back(lane.get());
    messages += lane->window.size();
    bytes += lane->bytes;
  }
  const auto too_many = [&] { return messages > 0 && 2 * messages >= max_held_; };
  const auto too_large = [&] { return bytes > 0 && 2 * bytes >= max_bytes_; };
  if (!too_many() && !too_large()) return;
  auto free = most_paused - std::ranges::count_if(lanes_, [](const auto& each) { return each.second->is_paused; });
  std::ranges::sort(stuck, [&](const Lane* a, const Lane* b) {
    return too_many() ? a->window.size() > b->window.size() : a->bytes > b->bytes;
  });
  for (Lane* lane : stuck) {
    if (free-- <= 0 || (!too_many() && !too_large())) return;
    messages -= lane->window.size();
    bytes -= lane->bytes;
    lane->is_paused = true;
    // The lane is resumed when its first message succeeds. If its next messages fail as well, the lane stays paused
    // until it holds few messages.
    lane->resume_below = std::min(lane->window.size() / 2, max_held_ / 4);
    if (std::erase(settlement.resume, lane->id) == 0) settlement.pause.push_back(lane->id);
  }
}

std::size_t Lanes::paused_messages() const {
  std::size_t sum = 0;
  for (const auto& [id, lane] : lanes_) sum += lane->is_paused ? lane->window.size() : 0;
  return sum;
}

std::size_t Lanes::paused_bytes() const {
  std::size_t sum = 0;
  for (const auto& [id, lane] : lanes_) sum += lane->is_paused ? lane->bytes : 0;
  return sum;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
