#include "sim/log_broker.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace txinbox::sim {

using namespace std::chrono_literals;

void LogBroker::publish(std::size_t lane, BrokerMessage message) {
  lanes_[lane].messages.push_back(std::make_shared<const BrokerMessage>(std::move(message)));
  if (lanes_[lane].owner != nullptr) threads().wake_all(lanes_[lane].owner);
}

std::unique_ptr<SimSource> LogBroker::connect() { return std::make_unique<LogSource>(*this); }

std::optional<Waiting> LogBroker::waiting(const Counts& counts) const {
  std::optional<Waiting> waiting;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const Lane& lane = lanes_[i];
    if (lane.acknowledged == lane.messages.size() || !counts(i, *lane.messages[lane.acknowledged])) continue;
    const std::string& first = lane.messages[lane.acknowledged]->body;
    if (!waiting) waiting = Waiting{.key = first, .text = {}};
    waiting->text += fmt::format("{}lane {} from {} ({}) to {}, read to {}{}{}", waiting->text.empty() ? "" : "; ", i,
                                 lane.acknowledged, first, lane.messages.size(), lane.next,
                                 lane.is_paused ? ", paused" : "", lane.owner == nullptr ? ", without a member" : "");
  }
  return waiting;
}

void LogBroker::give(Lane& lane, LogSource* member) {
  if (lane.owner != nullptr) lane.owner->has_lost_ = true;
  lane.owner = member;
  ++lane.epoch;
  lane.next = lane.acknowledged;
  lane.is_paused = false;
  if (member != nullptr) member->has_gained_ = true;
}

void LogBroker::balance() {
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    LogSource* const member = members_.empty() ? nullptr : members_[i % members_.size()];
    if (lanes_[i].owner != member) give(lanes_[i], member);
  }
}

void LogBroker::disturb() {
  if (!members_.empty()) give(lanes_[threads().any_of(lanes_.size())], members_[threads().any_of(members_.size())]);
}

void LogBroker::forget_some(Lane& lane) {
  lane.acknowledged -= threads().any_of(1 + std::min(lane.acknowledged, most_forgotten));
}

void LogBroker::forget() {
  Lane& lane = lanes_[threads().any_of(lanes_.size())];
  forget_some(lane);
  give(lane, lane.owner);
}

void LogBroker::recreate() {
  const bool sends_all = threads().any_of(4) == 0;
  for (Lane& each : lanes_) {
    if (sends_all) each.acknowledged = 0;
    forget_some(each);
    each.messages.erase(each.messages.begin(), each.messages.begin() + static_cast<std::ptrdiff_t>(each.acknowledged));
    each.acknowledged = 0;
    for (auto& message : each.messages) {
      BrokerMessage again = *message;
      again.id += "-anew";
      message = std::make_shared<const BrokerMessage>(std::move(again));
    }
    give(each, each.owner);
  }
}

void LogBroker::step() {
  expel_silent(members_, [this](LogSource& member) { leave(member); });
}

void LogBroker::join(LogSource& member) {
  members_.push_back(&member);
  member.is_member_ = true;
  balance();
}

void LogBroker::leave(LogSource& member) noexcept {
  std::erase(members_, &member);
  member.is_member_ = false;
  balance();
}

LogSource::~LogSource() { LogSource::close(); }

void LogSource::connect() {
  if (is_member_) return;
  threads().sleep_for(5ms);
  broker_.join(*this);
}

std::vector<Incoming> LogSource::take(std::size_t max) {
  if (std::exchange(has_lost_, false)) report(SourceEventType::lanes_revoked, "the group has changed");
  if (std::exchange(has_gained_, false)) report(SourceEventType::lanes_assigned, "the group has changed");
  std::vector<Incoming> taken;
  for (std::size_t i = 0; i < broker_.lanes_.size(); ++i) {
    LogBroker::Lane& lane = broker_.lanes_[i];
    while (lane.owner == this && !lane.is_paused && lane.next < lane.messages.size() && taken.size() < max) {
      taken.push_back(deliver(lane.messages[lane.next], tickets_.size()));
      taken.back().lane = i;
      tickets_.push_back({i, lane.next++, lane.epoch});
    }
  }
  return taken;
}

LogSource::Ticket LogSource::ticket_of(const Incoming& message) const { return tickets_[message.ticket]; }

const BrokerMessage& LogSource::message_of(const Incoming& message) const {
  const Ticket ticket = ticket_of(message);
  return *broker_.lanes_[ticket.lane].messages[ticket.offset];
}

bool LogSource::holds(const Incoming& message) const {
  const Ticket ticket = ticket_of(message);
  const LogBroker::Lane& lane = broker_.lanes_[ticket.lane];
  return is_member_ && lane.owner == this && lane.epoch == ticket.epoch;
}

void LogSource::acknowledge(std::span<const Incoming* const> messages) {
  threads().kill_point();
  if (threads().happens(broker_.faults.lose_acknowledgement)) return broker_.leave(*this);  // its connection ends, too
  for (const Incoming* const each : messages) {
    if (!holds(*each)) continue;
    const Ticket ticket = ticket_of(*each);
    LogBroker::Lane& lane = broker_.lanes_[ticket.lane];
    // Like Kafka's, an acknowledgement covers everything in front of it.
    while (lane.acknowledged <= ticket.offset) broker_.on_end(*lane.messages[lane.acknowledged++], nullptr);
  }
}

void LogSource::pause(std::uint64_t lane) {
  if (broker_.lanes_[lane].owner == this) broker_.lanes_[lane].is_paused = true;
}
void LogSource::resume(std::uint64_t lane) {
  if (broker_.lanes_[lane].owner == this) broker_.lanes_[lane].is_paused = false;
}
void LogSource::rewind(const Incoming& first) {
  if (!broker_.can_rewind_) throw std::logic_error("rewind on a broker that cannot");
  if (holds(first)) broker_.lanes_[ticket_of(first).lane].next = ticket_of(first).offset;
}

SourceStatus LogSource::status() {
  SourceStatus status{.name = "simulated", .connected = is_member_, .at_end = is_member_};
  for (const LogBroker::Lane& each : broker_.lanes_) {
    if (each.owner != this) continue;
    ++status.lanes;
    if (each.next < each.messages.size()) status.at_end = false;
  }
  return status;
}

void LogSource::close() noexcept {
  if (is_member_) broker_.leave(*this);
}

}  // namespace txinbox::sim
