// Consumes one key under a lease. After its handler has run, it makes the server hold its log (late_log.cpp), so that
// the completion is not on the disk. late_log.sh uses it.
//
// Usage: txinbox_late_lease BUSINESS_KEY HOLD_FILE     with TXINBOX_DB

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>

#include <txinbox/txinbox.hpp>

int main(int argc, char** argv) {
  const char* url = std::getenv("TXINBOX_DB");
  if (argc != 3 || url == nullptr) return 2;
  try {
    txinbox::Pool pool = txinbox::open_pool(url, {.connections = 1});
    txinbox::LeaseConsumer consumer(pool, "late-log", {}, {.retry = {.max_runs = 100}});
    const auto result =
        consumer.consume({.business_key = argv[1]}, [&](txinbox::Lease&) { const std::ofstream hold(argv[2]); });
    std::puts(result.outcome == txinbox::Outcome::consumed ? "consumed" : "not consumed");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "txinbox_late_lease: %s\n", error.what());
    return 1;
  }
  return 0;
}
