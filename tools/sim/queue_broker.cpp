#include "sim/queue_broker.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace txinbox::sim {

using namespace std::chrono_literals;

namespace {

constexpr int delivery_limit = 3;

}  // namespace

void QueueBroker::publish(std::size_t /*lane*/, BrokerMessage message) {
  ready_.push_back(messages_.size());
  messages_.push_back({std::make_shared<const BrokerMessage>(std::move(message))});
  wake_members();
}

std::unique_ptr<SimSource> QueueBroker::connect() { return std::make_unique<QueueSource>(*this); }

std::optional<Waiting> QueueBroker::waiting(const Counts& counts) const {
  std::size_t count = 0, held = 0;
  std::string first;
  for (const Queued& each : messages_) {
    if (each.is_done || !counts(std::nullopt, *each.message)) continue;
    if (count++ == 0) first = each.message->body;
    if (each.holder != nullptr) ++held;
  }
  if (count == 0) return std::nullopt;
  return Waiting{first,
                 fmt::format("{} messages of the queue, {} of them unacknowledged, first {},", count, held, first)};
}

void QueueBroker::close_channel(QueueSource& member) noexcept {
  if (!std::exchange(member.has_channel_, false)) return;
  member.has_lost_ = true;
  ++member.channel_;
  std::erase(members_, &member);
  for (std::size_t place = messages_.size(); place-- > 0;) {
    if (messages_[place].holder != &member) continue;
    messages_[place].holder = nullptr;
    if (faults.has_delivery_limit && messages_[place].deliveries >= delivery_limit) {
      aside_.emplace(threads().now() + std::chrono::seconds(threads().any_of(60)), place);
    } else {
      ready_.push_front(place);
    }
  }
  wake_members();
}

void QueueBroker::wake_members() noexcept {
  for (QueueSource* const each : members_) threads().wake_all(each);
}

void QueueBroker::disturb() {
  if (!members_.empty()) close_channel(*members_[threads().any_of(members_.size())]);
}

/// Some of the last messages that were acknowledged.
void QueueBroker::forget() {
  std::size_t left = threads().any_of(1 + most_forgotten);
  for (std::size_t place = messages_.size(); place-- > 0 && left > 0;) {
    if (!messages_[place].is_done || threads().any_of(2) == 0) continue;
    messages_[place].is_done = false;
    messages_[place].deliveries = 0;
    ready_.push_back(place);
    --left;
  }
  wake_members();
}

void QueueBroker::recreate() {
  for (QueueSource* const each : std::vector(members_)) close_channel(*each);
  forget();
}

void QueueBroker::step() {
  const auto end = aside_.upper_bound(threads().now());
  for (auto each = aside_.begin(); each != end; ++each) {
    messages_[each->second].deliveries = 0;
    ready_.push_back(each->second);
  }
  if (end != aside_.begin()) wake_members();
  aside_.erase(aside_.begin(), end);
  expel_silent(members_, [this](QueueSource& member) { close_channel(member); });
}

QueueSource::~QueueSource() { QueueSource::close(); }

void QueueSource::connect() {
  if (std::exchange(has_lost_, false)) report(SourceEventType::disconnected, "the channel has ended");
  if (has_channel_) return;
  threads().sleep_for(5ms);
  has_channel_ = true;
  broker_.members_.push_back(this);
  report(SourceEventType::connected, "there is a new channel");
}

std::vector<Incoming> QueueSource::take(std::size_t max) {
  std::vector<Incoming> taken;
  while (!broker_.ready_.empty() && taken.size() < max) {
    const std::size_t place = broker_.ready_.front();
    broker_.ready_.pop_front();
    QueueBroker::Queued& queued = broker_.messages_[place];
    queued.holder = this;
    taken.push_back(deliver(queued.message, tickets_.size()));
    taken.back().deliveries = ++queued.deliveries;
    tickets_.push_back({place, channel_});
  }
  return taken;
}

const BrokerMessage& QueueSource::message_of(const Incoming& message) const {
  return *broker_.messages_[ticket_of(message).place].message;
}

bool QueueSource::holds(const Incoming& message) const {
  return has_channel_ && ticket_of(message).channel == channel_;
}

void QueueSource::acknowledge(std::span<const Incoming* const> messages) {
  threads().kill_point();
  if (threads().happens(broker_.faults.lose_acknowledgement)) return broker_.close_channel(*this);
  for (const Incoming* const each : messages) {
    if (!holds(*each)) continue;
    QueueBroker::Queued& queued = broker_.messages_[ticket_of(*each).place];
    queued.holder = nullptr;
    if (!std::exchange(queued.is_done, true)) broker_.on_end(*queued.message, nullptr);
  }
}

SourceStatus QueueSource::status() {
  return {.name = "simulated queue",
          .connected = has_channel_,
          .lag = broker_.ready_.size(),
          .at_end = has_channel_ && broker_.ready_.empty()};
}

void QueueSource::close() noexcept {
  broker_.close_channel(*this);
  has_lost_ = false;
}

}  // namespace txinbox::sim
