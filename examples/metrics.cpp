// Metrics for Prometheus: the response of a service to a scrape.
//
// Usage: metrics [URL]      (by default sqlite:orders.db)

#include <iostream>
#include <memory>
#include <string>

#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

// Any HTTP server's response.
struct Response {
  std::string content_type;
  std::string body;
};

// docs/operations/watching.md: metrics
const auto metrics = std::make_shared<txinbox::Metrics>();

Response serve_metrics() { return {std::string(txinbox::Metrics::content_type), metrics->text()}; }

int main(int argc, char** argv) {
  auto pool = txinbox::open_pool(argc > 1 ? argv[1] : "sqlite:orders.db");
  {
    auto connection = pool.acquire();
    txinbox::migrate(connection);
  }
  // docs/operations/watching.md: the listener
  const auto log = txinbox::on_event([](const txinbox::Event& event) { std::clog << to_string(event.type) << '\n'; });
  txinbox::TxConsumer consumer(pool, "order-service", {.listeners = {metrics, log}});
  for (const char* order : {"order1", "order2", "order1"}) {
    (void)consumer.consume({.business_key = order}, [](soci::session&, txinbox::Delivery&) {});
  }
  std::cout << serve_metrics().body;
  return 0;
}
