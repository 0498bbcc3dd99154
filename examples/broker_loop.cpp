// A broker loop by hand, as docs/first-service.md shows it. A list takes the place of the broker.
//
// Usage: broker_loop [URL]      (by default sqlite:orders.db)

#include <chrono>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

using namespace std::chrono_literals;

struct Incoming {
  std::string order_no;
  std::string broker_id;
};

// docs/first-service.md: a loop of your own
txinbox::Action deliver(txinbox::TxConsumer& consumer, const Incoming& in, const txinbox::Handler& handler) {
  try {
    return action_for(consumer.consume({.business_key = in.order_no, .message_id = in.broker_id}, handler));
  } catch (...) {
    return txinbox::action_for(std::current_exception());
  }
}
// acknowledge: tell the broker.        redeliver: do not; it delivers again.
// dead_letter: publish it to your dead-letter queue, then acknowledge.
// stop: nothing can be consumed until someone fixes the set-up (txinbox doctor says what).

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "sqlite:orders.db";
  // docs/reference/blocking.md: below a poll interval of 30 s
  auto pool = txinbox::open_pool(
      url, {.acquire_timeout = 5s, .connect_timeout = 3s, .lock_timeout = 3s, .statement_timeout = 5s});
  txinbox::TxConsumer consumer(pool, "order-service", {.retry = {.max_elapsed = 8s}});
  {
    auto connection = pool.acquire();
    txinbox::migrate(connection);
  }
  int runs = 0;
  const std::vector<Incoming> broker = {
      {"order1", "m1"}, {"order2", "m2"}, {"order1", "m3"}, {std::string(300, 'x'), "m4"}};
  for (const Incoming& in : broker) {
    const txinbox::Action action = deliver(consumer, in, [&](soci::session&, txinbox::Delivery&) { ++runs; });
    std::cout << in.broker_id << ": " << txinbox::to_string(action) << '\n';
  }
  return runs == 2 ? 0 : 1;
}
