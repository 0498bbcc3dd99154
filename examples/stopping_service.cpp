// A service that ends by itself on SIGTERM, and leaves no message half done.
//
// Usage: stopping_service [URL]      (by default sqlite:orders.db); runs until SIGTERM or SIGINT

#include <csignal>

#include <chrono>
#include <exception>
#include <iostream>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <txinbox/txinbox.hpp>

/// In place of a broker: one order after the other.
void poll_broker(txinbox::TxConsumer& consumer, const std::stop_token& stop) {
  for (int no = 1; !stop.stop_requested(); ++no) {
    try {
      (void)consumer.consume({.business_key = "order" + std::to_string(no)}, [](soci::session&, txinbox::Delivery&) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      });
      // A real service does here what action_for says.
    } catch (const std::exception&) {
      if (stop.stop_requested()) return;  // not acknowledged: it is delivered again after the restart
      throw;
    }
  }
}

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "sqlite:orders.db";

  // docs/guides/stopping.md, and docs/operations/retention.md for the purger
  sigset_t signals;  // blocked before the first thread begins, so that all threads inherit it
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  auto pool = txinbox::open_pool(url);
  txinbox::migrate(pool.acquire());
  txinbox::Purger purger(pool, std::chrono::days(30));  // until it is destroyed
  std::stop_source stop;
  txinbox::TxConsumer consumer(pool, "order-service", {.stop = stop.get_token()});
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { poll_broker(consumer, stop.get_token()); });

  std::cout << "running" << std::endl;
  int signal = 0;
  sigwait(&signals, &signal);
  stop.request_stop();  // no new handler begins, waits end
  threads.clear();      // joins them: the current messages finish
  // then, by the end of their scope, the consumer, the purger and the pool

  std::cout << "stopped\n";
}
