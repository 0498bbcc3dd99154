#include "support/memory_broker.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace txinbox::test {
namespace {

/// The ticket of a delivery: lane, position and epoch.
constexpr std::uint64_t ticket_of(std::size_t lane, std::size_t place, std::uint64_t epoch) {
  return (static_cast<std::uint64_t>(lane) << 48U) | (epoch << 32U) | place;
}
constexpr std::size_t lane_of(std::uint64_t ticket) { return ticket >> 48U; }
constexpr std::uint64_t epoch_of(std::uint64_t ticket) { return (ticket >> 32U) & 0xffffU; }
constexpr std::size_t place_of(std::uint64_t ticket) { return ticket & 0xffffffffU; }

struct Bytes {
  std::shared_ptr<MemoryBroker::Stored> message;
  std::string id;
  std::vector<IncomingHeader> headers;
};

}  // namespace

void MemoryBroker::publish(int lane, Stored message) {
  const std::lock_guard lock(mutex_);
  lanes_.at(static_cast<std::size_t>(lane)).messages.push_back(std::make_shared<Stored>(std::move(message)));
  changed_.notify_all();
}

std::size_t MemoryBroker::acknowledged(std::size_t lane) const {
  const std::lock_guard lock(mutex_);
  return has_lanes_ ? lanes_.at(lane).acknowledged : lanes_.at(lane).acknowledged_of_queue.size();
}

std::size_t MemoryBroker::acknowledged_in_all() const {
  std::size_t sum = 0;
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) sum += acknowledged(lane);
  return sum;
}

std::vector<MemoryBroker::Letter> MemoryBroker::letters() const {
  const std::lock_guard lock(mutex_);
  return letters_;
}

std::size_t MemoryBroker::wrong_acknowledgements() const {
  const std::lock_guard lock(mutex_);
  return wrong_;
}

void MemoryBroker::refuse_dead_letters(bool refuse) {
  const std::lock_guard lock(mutex_);
  refuses_dead_letters_ = refuse;
}

MemorySource::MemorySource(MemoryBroker& broker, bool has_dead_letters)
    : broker_(broker), has_dead_letters_(has_dead_letters), positions_(broker.lanes_.size()) {
  const std::lock_guard lock(broker_.mutex_);
  for (std::size_t lane = 0; lane < positions_.size(); ++lane)
    positions_[lane].next = broker_.lanes_[lane].acknowledged;
}

bool MemorySource::has_more() const {
  for (std::size_t lane = 0; lane < positions_.size(); ++lane) {
    if (!positions_[lane].is_paused && positions_[lane].next < broker_.lanes_[lane].messages.size()) return true;
  }
  return false;
}

std::vector<Incoming> MemorySource::poll(std::size_t max, std::chrono::milliseconds wait) {
  std::vector<Incoming> taken;
  std::unique_lock lock(broker_.mutex_);
  largest_poll_ = std::max(largest_poll_, max);
  broker_.changed_.wait_for(lock, wait, [&] { return (max > 0 && has_more()) || is_woken_ || error_ || has_lost(); });
  is_woken_ = false;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  if (has_lost()) {
    lose_now();
    lock.unlock();
    report(SourceEventType::lanes_revoked, "lanes were taken back");
    return taken;
  }
  take(max, taken);
  return taken;
}

void MemorySource::take(std::size_t max, std::vector<Incoming>& taken) {
  for (std::size_t lane = 0; lane < positions_.size(); ++lane) {
    Position& position = positions_[lane];
    auto& messages = broker_.lanes_[lane].messages;
    while (!position.is_paused && taken.size() < max && position.next < messages.size()) {
      const std::size_t place = position.next++;
      if (broker_.lanes_[lane].acknowledged_of_queue.contains(place)) continue;
      auto bytes = std::make_shared<Bytes>();
      bytes->message = messages[place];
      bytes->id = std::to_string(lane) + "@" + std::to_string(place);
      for (const auto& [name, value] : bytes->message->headers)
        bytes->headers.push_back({.name = name, .value = value});
      Incoming incoming{.body = bytes->message->body,
                        .has_body = bytes->message->has_body,
                        .id = bytes->id,
                        .headers = bytes->headers,
                        .ticket = ticket_of(lane, place, position.epoch)};
      if (bytes->message->key) incoming.key = *bytes->message->key;
      if (broker_.has_lanes_) incoming.lane = lane;
      tickets_[{lane, place}] = incoming.ticket;
      incoming.owner = std::move(bytes);
      taken.push_back(std::move(incoming));
    }
  }
}

void MemorySource::lose_now() {
  for (const std::size_t lane : std::exchange(to_take_back_, {})) {
    Position& position = positions_[lane];
    position.held_since = ++position.epoch;
    position.is_paused = false;
    position.next = broker_.lanes_[lane].acknowledged;
  }
  for (const auto& [lane, place] : std::exchange(to_lose_, {})) {
    Position& position = positions_[lane];
    gone_.insert(tickets_.at({lane, place}));
    ++position.epoch;
    position.next = std::min(position.next, place);
  }
}

void MemorySource::acknowledge(std::span<const Incoming* const> messages) {
  const std::lock_guard lock(broker_.mutex_);
  for (const Incoming* message : messages) {
    const std::size_t lane = lane_of(message->ticket);
    const std::size_t place = place_of(message->ticket);
    if (!holds(*message)) continue;
    auto& at_broker = broker_.lanes_[lane];
    if (broker_.has_lanes_) {
      if (place != at_broker.acknowledged) ++broker_.wrong_;
      at_broker.acknowledged = std::max(at_broker.acknowledged, place + 1);
    } else if (!at_broker.acknowledged_of_queue.insert(place).second) {
      ++broker_.wrong_;
    }
  }
}

void MemorySource::dead_letter(std::span<DeadLetter> letters) {
  const std::lock_guard lock(broker_.mutex_);
  for (DeadLetter& letter : letters) {
    if (broker_.refuses_dead_letters_ || !holds(*letter.incoming)) continue;
    broker_.letters_.push_back({.body = std::string(letter.incoming->body),
                                .reason = std::string(letter.reason),
                                .business_key = letter.business_key,
                                .error_class = letter.error_class,
                                .consumer = letter.consumer,
                                .failures = letter.failures});
    letter.confirmed = true;
  }
}

bool MemorySource::holds(const Incoming& message) const {
  return epoch_of(message.ticket) >= positions_[lane_of(message.ticket)].held_since && !gone_.contains(message.ticket);
}

void MemorySource::pause(std::uint64_t lane) {
  const std::lock_guard lock(broker_.mutex_);
  if (positions_.at(lane).is_paused) ++broker_.wrong_;
  positions_[lane].is_paused = true;
  ++pauses_;
}

void MemorySource::resume(std::uint64_t lane) {
  const std::lock_guard lock(broker_.mutex_);
  if (!std::exchange(positions_.at(lane).is_paused, false)) return;
  ++resumes_;
}

void MemorySource::rewind(const Incoming& first) {
  const std::lock_guard lock(broker_.mutex_);
  Position& position = positions_[lane_of(first.ticket)];
  if (!position.is_paused) ++broker_.wrong_;
  position.next = place_of(first.ticket);
  ++rewinds_;
}

void MemorySource::give_back(const Incoming& message) {
  const std::lock_guard lock(broker_.mutex_);
  if (!gone_.insert(message.ticket).second) ++broker_.wrong_;
}

void MemorySource::wake() noexcept {
  const std::lock_guard lock(broker_.mutex_);
  is_woken_ = true;
  broker_.changed_.notify_all();
}

SourceStatus MemorySource::status() {
  const std::lock_guard lock(broker_.mutex_);
  std::uint64_t lag = 0;
  for (std::size_t lane = 0; lane < positions_.size(); ++lane) {
    lag += broker_.lanes_[lane].messages.size() - positions_[lane].next;
  }
  return {
      .name = "memory", .connected = !is_closed_, .lag = lag, .lanes = positions_.size(), .reconnects = reconnects_};
}

void MemorySource::take_back(std::size_t lane) {
  const std::lock_guard lock(broker_.mutex_);
  to_take_back_.push_back(lane);
  broker_.changed_.notify_all();
}

void MemorySource::lose(std::size_t lane, std::size_t place) {
  const std::lock_guard lock(broker_.mutex_);
  to_lose_.emplace_back(lane, place);
  broker_.changed_.notify_all();
}

void MemorySource::fail(std::exception_ptr error) {
  const std::lock_guard lock(broker_.mutex_);
  error_ = std::move(error);
  broker_.changed_.notify_all();
}

}  // namespace txinbox::test
