// A service that consumes orders, and publishes a message for each order that it has booked.
//
// Usage: outbox

#include <atomic>
#include <chrono>
#include <cstddef>
#include <iostream>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

namespace {

/// In place of a broker. A real one may return `confirmed` only when the broker has stored the message permanently.
std::vector<txinbox::PublishResult> publish(std::span<const txinbox::OutgoingMessage> messages) {
  std::vector<txinbox::PublishResult> results;
  for (const txinbox::OutgoingMessage& message : messages) {
    std::cout << message.topic << ' ' << message.key << ' ' << message.type << ' ' << message.payload << std::endl;
    results.push_back({.status = txinbox::PublishStatus::confirmed});
  }
  return results;
}

/// Returns how many orders were booked.
std::size_t consume_orders(txinbox::TxConsumer& consumer) {
  std::size_t booked = 0;
  for (const char* no : {"order1", "order2", "order1"}) {
    const auto result = consumer.consume({.business_key = no}, [](soci::session& sql, txinbox::Delivery& d) {
      const std::string& order = d.message().business_key;
      sql << "insert into t_order values (:no, 'BOOKED')", soci::use(order);
      txinbox::Outbox::add(sql, {.topic = "stock", .key = order, .type = "OrderBooked", .payload = "{}"});
    });
    if (result.outcome == txinbox::Outcome::consumed) ++booked;
  }
  return booked;
}

}  // namespace

int main() {
  auto pool = txinbox::open_pool("sqlite:orders.db");
  {
    auto connection = pool.acquire();
    txinbox::migrate(connection);
    *connection << "create table if not exists t_order (order_no text primary key, status text)";
  }
  std::atomic<std::size_t> published = 0;
  const auto observe = [&](const txinbox::RelayEvent& event) {
    if (event.type == txinbox::RelayEventType::published) published += event.messages;
  };
  txinbox::OutboxRelay relay(pool, publish, {.max_attempts = 10, .listeners = {txinbox::on_event(observe)}});

  txinbox::TxConsumer consumer(pool, "order-service");
  const std::size_t booked = consume_orders(consumer);
  relay.wake();
  while (published < booked) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}
