// Tracing: a listener that prints how long each part of a delivery takes.
//
// Usage: tracing [URL]      (by default sqlite:orders.db)

#include <chrono>
#include <cstddef>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

// docs/operations/watching.md: a listener
class Tracer : public txinbox::Listener {
  using Clock = std::chrono::steady_clock;

  void on_begin(const txinbox::Scope&) override { open_spans().push_back(Clock::now()); }

  void on_end(const txinbox::Scope& scope, const std::exception_ptr& error) override {
    const std::chrono::duration<double, std::milli> took = Clock::now() - open_spans().back();
    open_spans().pop_back();
    std::cout << std::string(2 * open_spans().size(), ' ') << to_string(scope.kind) << ": " << took.count() << " ms"
              << (error ? ", failed" : "") << '\n';
  }

  // Scopes of one thread nest, so each thread has a stack of its own.
  static std::vector<Clock::time_point>& open_spans() {
    thread_local std::vector<Clock::time_point> spans;
    return spans;
  }
};

int main(int argc, char** argv) {
  auto pool = txinbox::open_pool(argc > 1 ? argv[1] : "sqlite:orders.db");
  {
    auto connection = pool.acquire();
    txinbox::migrate(connection);
  }
  // docs/operations/watching.md: the consumer with a listener
  txinbox::TxConsumer consumer(pool, "order-service", {.listeners = {std::make_shared<Tracer>()}});
  for (const char* order : {"order1", "order1"}) {
    (void)consumer.consume({.business_key = order}, [](soci::session&, txinbox::Delivery&) {});
  }
  return 0;
}
