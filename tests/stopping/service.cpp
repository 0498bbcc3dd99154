// A service as docs/guides/stopping.md describes it: SIGTERM sets a stop token, the threads end by themselves, and then
// the objects that they used are destroyed.

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <functional>
#include <stop_token>
#include <thread>
#include <vector>

#include <txinbox/txinbox.hpp>

#include "stopping/workers.hpp"

namespace {

using namespace std::chrono_literals;
using namespace txinbox::test;

/// Runs the threads of the service until the stop.
void serve(const char* url, const std::stop_token& stop, LineWriter& lines) {
  txinbox::Pool pool = txinbox::open_pool(url, {.connections = 10});
  txinbox::Pool busy = txinbox::open_pool(url, {.connections = 1, .acquire_timeout = 10min});
  const auto in_use = busy.acquire();
  const txinbox::Purger purger(pool, 1h,
                               {.interval = 1ms,
                                .purge = {.consumer = "old",
                                          .batch_size = 50,
                                          .stop = stop,
                                          .listeners = {txinbox::on_event([&](const txinbox::Event& event) {
                                            if (event.type == txinbox::EventType::purged) lines.write("purged");
                                          })}}});
  Workers workers(pool, stop, lines);
  Workers without_connection(busy, stop, lines);
  std::vector<std::jthread> threads;
  const auto start = [&](Workers& who, void (Workers::*what)()) {
    threads.emplace_back([&, what] {
      try {
        std::invoke(what, who);
      } catch (const std::exception& error) {
        lines.write(std::string("failed ") + error.what());
      }
    });
  };
  for (int i = 0; i < 2; ++i) {
    start(workers, &Workers::one_by_one);
    start(workers, &Workers::under_leases);
  }
  start(workers, &Workers::in_batches);
  start(workers, &Workers::waiting_for_a_lease);
  start(workers, &Workers::waiting_to_retry);
  start(without_connection, &Workers::waiting_for_a_connection);
}

}  // namespace

int main() {
  const char* url = std::getenv("TXINBOX_DB");
  if (url == nullptr) return 2;
  // Blocks the signals before the first thread begins, so that all threads inherit this. One thread waits for the
  // signal.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  LineWriter lines;
  std::stop_source source;
  std::jthread waits_for_signal([&] {
    int signal = 0;
    sigwait(&signals, &signal);
    source.request_stop();
    lines.write("stopping");
  });
  try {
    serve(url, source.get_token(), lines);
  } catch (const std::exception& error) {
    lines.write(std::string("failed ") + error.what());
    std::_Exit(1);
  }
  lines.write("ended");
  return 0;
}
