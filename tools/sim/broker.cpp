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

std::shared_ptr<const void> SimSource::owner_of(std::shared_ptr<const BrokerMessage> message) const {
  return std::make_shared<Delivered>(std::move(message), held_);
}

std::unique_ptr<Broker> make_broker(BrokerKind kind, std::size_t lanes) {
  if (kind == BrokerKind::queue) return std::make_unique<QueueBroker>();
  return std::make_unique<LogBroker>(lanes, kind == BrokerKind::log);
}

}  // namespace txinbox::sim
