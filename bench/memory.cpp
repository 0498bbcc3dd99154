#include <unistd.h>

#include <fstream>

#include <fmt/format.h>
#include <soci/soci.h>

#include "business_work.hpp"
#include "effects.hpp"
#include "measure.hpp"
#include "sections.hpp"

namespace txinbox::bench {
namespace {

/// The resident memory of this process.
double resident_kib() {
  std::ifstream statm("/proc/self/statm");
  long pages = 0;
  statm >> pages >> pages;
  return static_cast<double>(pages) * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1024;
}

}  // namespace

Json measure_memory(const Target& target, const MemoryOptions& options) {
  const Database database(target);
  Pool pool = database.pool(1);
  TxConsumer consumer(pool, "memory");
  const Handler handler = business_handler();
  const auto consume = [&](int first, int count) {
    for (int i = first; i < first + count; ++i) {
      (void)consumer.consume({.business_key = fmt::format("memory-{:08}", i)}, handler);
    }
  };
  consume(0, options.warm_up);
  const double before = resident_kib();
  const auto start = Clock::now();
  constexpr int parts = 10;
  Progress progress("tenths", parts);
  Json growth = Json::array();
  for (int part = 0; part < parts; ++part) {
    const int first = options.warm_up + static_cast<int>(static_cast<long long>(options.messages) * part / parts);
    const int last = options.warm_up + static_cast<int>(static_cast<long long>(options.messages) * (part + 1) / parts);
    consume(first, last - first);
    growth.push_back(resident_kib() - before);
    progress.step();
  }
  const double seconds = microseconds_since(start) / 1e6;
  {
    const auto connection = pool.acquire();
    Effects(connection).expect_claims("memory", options.messages + options.warm_up);
  }
  return {{"messages", options.messages}, {"seconds", seconds}, {"resident_kib", before}, {"growth_kib", growth}};
}

}  // namespace txinbox::bench
