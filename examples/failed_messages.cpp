// A message whose handler fails: txinbox counts the failures and parks the message, and an operator
// lets it run again.
//
// Usage: failed_messages [URL]      (by default sqlite:orders.db)

#include <chrono>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>

#include <soci/soci.h>
#include <txinbox/failed_messages.hpp>
#include <txinbox/txinbox.hpp>

struct Incoming {
  std::string order_no;
  std::string json;
};

bool warehouse_is_away = true;
bool warehouse_knows_all = false;

void ship(soci::session&, txinbox::Delivery& delivery) {
  if (warehouse_is_away) {
    // docs/guides/failed-messages.md
    throw txinbox::RetryLater(std::chrono::seconds(30));
  }
  if (delivery.message().business_key == "order2" && !warehouse_knows_all)
    throw std::invalid_argument("no such article");
}

txinbox::Action deliver(txinbox::TxConsumer& consumer, const Incoming& in) {
  try {
    return action_for(consumer.consume({.business_key = in.order_no, .payload = in.json}, ship));
  } catch (...) {
    return txinbox::action_for(std::current_exception());
  }
}

void publish_again(const std::string& json) { std::cout << "published again: " << json << '\n'; }

// docs/guides/failed-messages.md
void retry_what_failed_today(soci::session& sql) {
  const txinbox::FailedFilter parked{.state = txinbox::FailedState::parked, .payloads = true};
  for (const auto& failed : txinbox::list_failed(sql, parked)) {
    std::cout << failed.business_key << ": failed " << failed.attempts << " times, " << failed.last_error << '\n';
    if (failed.age > std::chrono::hours(24)) continue;
    txinbox::retry_failed(sql, {.consumer = failed.consumer, .business_key = failed.business_key});
    if (failed.payload) publish_again(*failed.payload);  // unless the broker still has it
  }
}

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "sqlite:orders.db";
  auto pool = txinbox::open_pool(url);
  {
    auto connection = pool.acquire();
    txinbox::migrate(connection);
  }
  // docs/first-service.md: messages that fail
  txinbox::TxConsumer consumer(pool, "order-service", {.max_attempts = 3});

  const auto deliver_both = [&] {
    for (const Incoming& in : {Incoming{"order1", "{}"}, Incoming{"order2", R"({"no":"order2"})"}}) {
      std::cout << in.order_no << ": " << txinbox::to_string(deliver(consumer, in)) << '\n';
    }
  };
  deliver_both();  // not now, which is no failure
  warehouse_is_away = false;
  for (int delivery = 1; delivery <= 4; ++delivery) deliver_both();
  warehouse_knows_all = true;
  {
    auto connection = pool.acquire();
    retry_what_failed_today(connection);
  }
  deliver_both();
}
