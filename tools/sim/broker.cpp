#include "sim/broker.hpp"

#include <utility>

#include "sim/log_broker.hpp"
#include "sim/queue_broker.hpp"

namespace txinbox::sim {

namespace {

struct Delivered {
  Delivered(std::shared_ptr<const BrokerMessage> its_message, std::shared_ptr<std::size_t> counter)
      : message(std::move(its_message)), held(std::move(counter)) {
    ++*held;
  }
  ~Delivered() { --*held; }
  Delivered(const Delivered&) = delete;
  Delivered& operator=(const Delivered&) = delete;

  const std::shared_ptr<const BrokerMessage> message;
  const std::shared_ptr<std::size_t> held;
};

}  // namespace

std::vector<Incoming> SimSource::poll(std::size_t max, std::chrono::milliseconds wait) {
  auto& threads = *Threads::instance();
  threads.kill_point();
  last_poll_ = threads.now();
  connect();
  std::vector<Incoming> taken;
  const SimTime until = threads.now() + wait;
  while (may_receive()) {
    taken = take(max);
    if (!taken.empty() || is_woken_ || threads.now() >= until) break;
    (void)threads.wait_for_condition(this, &until);
  }
  is_woken_ = false;
  if (!taken.empty() && on_taken) on_taken();
  threads.kill_point();
  return taken;
}

Incoming SimSource::deliver(const std::shared_ptr<const BrokerMessage>& message, std::uint64_t ticket) const {
  ++any_broker_.deliveries_;
  return {.body = message->body,
          .key = message->key,
          .id = message->id,
          .ticket = ticket,
          .owner = std::make_shared<Delivered>(message, held_)};
}

void SimSource::dead_letter(std::span<DeadLetter> letters) {
  Threads::instance()->kill_point();
  for (DeadLetter& each : letters) {
    if (!holds(*each.incoming) || Threads::instance()->happens(any_broker_.faults.refuse_dead_letter)) continue;
    any_broker_.on_end(message_of(*each.incoming), &each);
    each.confirmed = true;
  }
}

void SimSource::wake() noexcept {
  is_woken_ = true;
  if (Threads::instance() != nullptr) Threads::instance()->wake_all(this);
}

std::unique_ptr<Broker> make_broker(BrokerKind kind, std::size_t lanes) {
  if (kind == BrokerKind::queue) return std::make_unique<QueueBroker>();
  return std::make_unique<LogBroker>(lanes, kind == BrokerKind::log);
}

}  // namespace txinbox::sim
