#include "sim/workloads/publishing.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <txinbox/native.hpp>
#include <txinbox/txinbox.hpp>

#include "base/interruptible_sleep.hpp"

namespace txinbox::sim {

using namespace std::chrono_literals;

namespace {

/// How many messages one transaction adds at most.
constexpr std::size_t most_of_cause = 3;

/// The time-out of a call of the publisher: less than half of the lease.
constexpr std::chrono::milliseconds longest_call = 14s;

void wait_for(const std::stop_token& stop) {
  while (detail::sleep_for(24h, stop)) {
  }
}

}  // namespace

void Publishing::add(::sqlite3* connection, const std::string& cause, const std::string& sequence,
                     std::size_t position) {
  const std::size_t count = std::hash<std::string>()(cause) % (most_of_cause + 1);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string payload = fmt::format("{}/{}", cause, i);
    if (!expected_.contains(payload)) {
      const Act act = draw_act();
      expected_[payload] = {.cause = cause, .sequence = sequence, .position = position * most_of_cause + i, .act = act};
      if (act == Act::is_stuck || act == Act::is_poison) stuck_sequences_.insert(sequence.empty() ? payload : sequence);
    }
    Outbox::add(connection, {.topic = "events", .key = sequence, .payload = payload});
  }
}

Publishing::Act Publishing::draw_act() const {
  const Plan& plan = world_.plan;
  if (threads().happens(plan.stuck_rate / 2)) return threads().any_of(2) == 0 ? Act::is_stuck : Act::is_poison;
  return threads().happens(plan.special_rate / 4) ? Act::rejects : Act::takes;
}

std::vector<std::string> Publishing::services() const {
  std::vector<std::string> names;
  add_names(names, "relay", world_.plan.relays);
  add_names(names, "producer", world_.plan.producers);
  return names;
}

void Publishing::serve(std::size_t service, const std::stop_token& stop) {
  return service < world_.plan.relays ? relay(stop) : produce(service - world_.plan.relays, stop);
}

void Publishing::relay(const std::stop_token& stop) {
  const Plan& plan = world_.plan;
  const std::string& name = threads().current_process().name();
  Pool pool = world_.open_pool(1);
  OutboxRelay relay(pool, [this](std::span<const OutgoingMessage> messages) { return receive(messages); },
                    {.batch = std::max<std::size_t>(plan.batch, 2),
                     .sweep = 3s,
                     .max_attempts = plan.max_attempts,
                     .max_backoff = 5s,
                     .stop = stop,
                     .listeners = {on_event([&](const RelayEvent& event) {
                       if (event.type == RelayEventType::parts) {
                         world_.story.tell("", "{} has {} parts", name, event.parts);
                       }
                       if (event.type == RelayEventType::failed || event.type == RelayEventType::parked) {
                         world_.story.tell("", "{} counts the {}. failure of {}", name, event.attempts, event.id);
                       }
                     })}});
  wait_for(stop);
}

/// Each producer has sequences of its own, so their messages are added in the order of the positions.
void Publishing::produce(std::size_t producer, const std::stop_token& stop) {
  constexpr std::size_t sequences = 4;
  Pool pool = world_.open_pool(1);
  TxConsumer consumer(pool, "producer", {.stop = stop});
  std::size_t& made = made_[producer];
  while (!stop.stop_requested() && made < world_.plan.produced) {
    if (made >= due_by_now(world_, world_.plan.produced)) {
      (void)detail::sleep_for(due_time(world_, made, world_.plan.produced) - threads().now(), stop);
      continue;
    }
    const std::string cause = fmt::format("producer{}-{}", producer + 1, made);
    const std::string sequence =
        made % 5 == 0 ? "" : fmt::format("producer{}-sequence{}", producer + 1, made % sequences);
    try {
      (void)consumer.consume({.business_key = cause}, [&](::sqlite3* connection, Delivery&) {
        ServerSession::of(connection).execute(World::insert_effect(cause));
        add(connection, cause, sequence, made);
      });
      ++made;
    } catch (const std::exception& error) {
      world_.story.tell(cause, "{} gets {}", threads().current_process().name(), error.what());
      threads().sleep_for(100ms);
    }
  }
  wait_for(stop);
}

std::vector<PublishResult> Publishing::receive(std::span<const OutgoingMessage> messages) {
  const ReceiverFaults faults = this->faults();
  const SimTime end = threads().now() + longest_call;
  threads().sleep_for(1ms);
  if (threads().happens(faults.be_slow))
    threads().sleep_for(std::chrono::milliseconds(threads().any_of(longest_call / 1ms)));
  deliveries_ += messages.size();
  // The message of a call may be blamed if it is alone.
  const auto fail = [&](const char* what) {
    if (messages.size() == 1) {
      Expected& alone = expected_.at(messages.front().payload);
      ++alone.failures;
      world_.story.tell(alone.cause, "the call for {} fails: {}", messages.front().payload, what);
    }
    throw std::runtime_error(what);
  };
  if (threads().happens(faults.fail)) fail("the receiver is away");
  const auto is_poison = [&](const OutgoingMessage& each) {
    return !world_.is_healed && expected_.at(each.payload).act == Act::is_poison;
  };
  if (std::ranges::any_of(messages, is_poison)) fail("the publisher cannot publish a message");
  std::vector<PublishResult> results;
  const bool drips = threads().happens(faults.drip);
  for (const OutgoingMessage& each : messages) {
    if (drips) threads().sleep_for(std::chrono::milliseconds(threads().any_of(5'000)));
    results.push_back(threads().now() < end ? receive_one(each) : PublishResult{PublishStatus::postponed});
    threads().kill_point();
  }
  if (threads().happens(faults.lose_confirmation)) fail("the receiver has gone away");
  threads().sleep_for(1ms);
  return results;
}

PublishResult Publishing::receive_one(const OutgoingMessage& message) {
  const ReceiverFaults faults = this->faults();
  Expected& expected = expected_.at(message.payload);
  const auto refuse = [&](PublishStatus status) {
    ++expected.failures;
    world_.story.tell(expected.cause, "the receiver refuses {}", message.payload);
    return PublishResult{status, "the receiver refuses it"};
  };
  if (expected.act == Act::rejects) return refuse(PublishStatus::rejected);
  if (expected.act == Act::is_stuck && !world_.is_healed) return refuse(PublishStatus::failed);
  if (threads().happens(faults.refuse)) return refuse(PublishStatus::failed);
  const bool is_postponed = threads().happens(faults.postpone);
  if (!is_postponed || threads().any_of(2) == 0) take(message);
  return {is_postponed ? PublishStatus::postponed : PublishStatus::confirmed};
}

void Publishing::take(const OutgoingMessage& message) {
  Story& story = world_.story;
  Expected& expected = expected_.at(message.payload);
  const std::string& cause = expected.cause;
  story.tell(cause, "{} publishes {} with the id {}", threads().current_process().name(), message.payload, message.id);
  const auto [known, is_new] = payloads_.emplace(message.id, message.payload);
  if (known->second != message.payload) {
    story.wrong(cause, "is published with the id of {}", known->second);
  }
  // A lost message is added again, perhaps under another id.
  if (const std::string before = std::exchange(expected.id, message.id);
      !before.empty() && before != message.id && !world_.lost.contains(cause)) {
    story.wrong(cause, "has {} published with the ids {} and {}", message.payload, before, message.id);
  }
  if (world_.effects_of(cause) == 0 && !world_.lost.contains(cause)) {
    story.wrong(cause, "is not durable, but {} is published", message.payload);
  }
  if (message.key != expected.sequence) story.wrong(cause, "has another key than {}", message.payload);
  if (expected.published++ > 0 || expected.sequence.empty() || world_.lost.contains(cause)) return;
  const auto [last, is_first] = last_positions_.emplace(expected.sequence, expected.position);
  // While a message was parked, later ones overtook it. A backup can undo that it was parked.
  const bool was_parked = world_.had_failover() && may_be_parked(expected);
  // After a stale sequence, later messages get lower numbers than those that are in the outbox.
  if (!is_first && expected.position < last->second && !was_parked && !may_be_late(cause) &&
      !world_.server.had_stale_sequence()) {
    story.wrong(cause, "is published after a later message of its key");
  }
  last->second = std::max(last->second, expected.position);
}

std::vector<std::string> Publishing::in_outbox(bool parked) {
  std::vector<std::string> payloads;
  for (const Values& row : world_.server.query(
           fmt::format("SELECT payload FROM txinbox_outbox_message WHERE parked_at IS {} NULL", parked ? "NOT" : ""))) {
    payloads.push_back(row.front().bytes);
  }
  return payloads;
}

std::optional<Waiting> Publishing::waiting(bool stuck) {
  for (std::size_t i = 0; i < made_.size(); ++i) {
    if (made_[i] < world_.plan.produced) return Waiting{"", fmt::format("what producer {} has to add", i + 1)};
  }
  std::vector<std::string> left = in_outbox(false);
  if (!stuck) {
    std::erase_if(left, [&](const std::string& payload) {
      const std::string& sequence = expected_.at(payload).sequence;
      return stuck_sequences_.contains(sequence.empty() ? payload : sequence);
    });
  }
  if (left.empty()) return std::nullopt;
  return Waiting{expected_.at(left.front()).cause,
                 fmt::format("{} messages in the outbox, first {},", left.size(), left.front())};
}

/// A message is parked only for its own failures.
bool Publishing::may_be_parked(const Expected& expected) const {
  const int most = world_.plan.max_attempts;
  return expected.act == Act::rejects || (most > 0 && expected.failures >= most);
}

void Publishing::check_end() {
  std::set<std::string> parked;
  for (std::string& payload : in_outbox(true)) {
    const Expected& expected = expected_.at(payload);
    if (!may_be_parked(expected)) {
      world_.story.wrong(expected.cause, "has {} parked after {} failures", payload, expected.failures);
    }
    parked.insert(std::move(payload));
  }
  for (const auto& [payload, expected] : expected_) {
    const bool is_committed = world_.effects_of(expected.cause) > 0;
    if (is_committed && expected.published == 0 && !parked.contains(payload) && !world_.lost.contains(expected.cause)) {
      world_.story.wrong(expected.cause, "is committed, but {} was never published", payload);
    }
  }
}

}  // namespace txinbox::sim
