#include "sim/workloads/feed.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace txinbox::sim {

void watch_held(World& world, SimSource& source, const RunOptions& options) {
  // Those that run may have been taken back by the broker.
  const std::size_t running = options.batch * options.workers;
  const std::size_t in_flight =
      options.max_in_flight > 0 ? options.max_in_flight : std::max<std::size_t>(16, 4 * running);
  source.on_taken = [&world, &source, most = in_flight + options.max_waiting + running] {
    if (source.held() > most) world.story.wrong("", "{} messages are held, and {} may be", source.held(), most);
  };
}

Feed::Feed(World& world, std::string prefix, std::size_t messages)
    : world_(world),
      prefix_(std::move(prefix)),
      messages_(messages),
      broker_(make_broker(world.plan.broker_kind, world.plan.lanes)) {
  broker_->faults = world.plan.broker;
}

void Feed::step(const std::function<bool(const Placed&)>& add) {
  while (sent_ < due_by_now(world_, messages_)) send(add);
  broker_->step();
  if (world_.is_quiet) {
    broker_->faults = {};
    return;
  }
  if (happens_in_step(world_.plan.move_every)) broker_->disturb();
  if (happens_in_step(world_.plan.forget_every)) {
    world_.story.tell("", "the broker of {} forgets acknowledgements", prefix_);
    broker_->forget();
  }
  if (happens_in_step(world_.plan.recreate_every)) {
    world_.story.tell("", "the topic of {} is made anew", prefix_);
    broker_->recreate();
  }
}

void Feed::send(const std::function<bool(const Placed&)>& add) {
  const std::size_t number = sent_++;
  Placed placed{.key = fmt::format("{}{}", prefix_, number),
                .lane = threads().any_of(world_.plan.lanes),
                .record_key = {},
                .is_sent_again = threads().happens(world_.plan.resend_rate)};
  if (world_.plan.orders_by_key && threads().any_of(5) > 0)
    placed.record_key = fmt::format("record{}", threads().any_of(10));
  if (placed.record_key) record_keys_[placed.key] = *placed.record_key;
  const bool is_stuck = add(placed);
  if (is_stuck) stuck_.insert(placed.key);
  const auto publish = [&](std::size_t lane, const std::string& id) {
    if (is_stuck) stuck_lanes_.insert(lane);
    broker_->publish(lane, {.id = id, .body = placed.key, .key = placed.record_key});
  };
  publish(placed.lane, fmt::format("id{}", number));
  if (placed.is_sent_again) publish(threads().any_of(world_.plan.lanes), fmt::format("id{}-again", number));
}

void Feed::send_again(const std::string& key) {
  const auto found = record_keys_.find(key);
  const auto record_key = found == record_keys_.end() ? std::nullopt : std::optional(found->second);
  broker_->publish(threads().any_of(world_.plan.lanes),
                   {.id = fmt::format("{}-later{}", key, sent_again_++), .body = key, .key = record_key});
}

std::optional<Waiting> Feed::waiting(bool stuck) const {
  if (sent_ < messages_) return Waiting{"", "messages that are not sent yet"};
  return broker_->waiting([&](std::optional<std::size_t> lane, const BrokerMessage& message) {
    return stuck || (lane ? !stuck_lanes_.contains(*lane) : !stuck_.contains(message.body));
  });
}

}  // namespace txinbox::sim
