#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <exception>
#include <map>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <thread>

#include <fmt/format.h>
#include <soci/soci.h>
#include <txinbox/retention.hpp>

#include "business_work.hpp"
#include "effects.hpp"
#include "fill.hpp"
#include "measure.hpp"
#include "sections.hpp"
#include "spread_keys.hpp"

namespace txinbox::bench {
namespace {

void bind_to(int cpu) {
  if (cpu < 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  if (::pthread_setaffinity_np(::pthread_self(), sizeof set, &set) != 0) {
    throw std::runtime_error(fmt::format("the purge's thread cannot be bound to CPU {}", cpu));
  }
}

/// Runs a purge on a separate thread. The constructor returns after the first batch. The purge runs until `stop`.
class Purging {
 public:
  Purging(soci::session& sql, double duty, int cpu)
      : thread_([this, &sql, duty, cpu](const std::stop_token& stop) {
          try {
            bind_to(cpu);
            removed_ = purge(sql, std::chrono::hours(24),
                             {.duty = duty, .stop = stop, .listeners = {on_event([this](const Event&) { begun(); })}});
          } catch (...) {
            error_ = std::current_exception();
          }
          begun();
        }) {
    begun_.wait(false);
  }

  /// Stops the purge. Returns the number of removed rows.
  long long stop() {
    thread_.request_stop();
    thread_.join();
    if (error_) std::rethrow_exception(error_);
    if (removed_ == 0) throw std::runtime_error("purge: there was nothing to remove");
    return static_cast<long long>(removed_);
  }

 private:
  void begun() {
    begun_.test_and_set();
    begun_.notify_one();
  }

  std::atomic_flag begun_;
  std::size_t removed_ = 0;
  std::exception_ptr error_;
  std::jthread thread_;
};

/// Some percentiles of the times. The hundredth percentile is the longest time.
Json percentiles(std::vector<double> times) {
  std::ranges::sort(times);
  Json result = Json::object();
  for (const char* k : {"50", "90", "99", "99.9", "100"}) {
    const double rank = std::ceil(std::stod(k) / 100 * static_cast<double>(times.size()));
    result[k] = times.at(static_cast<std::size_t>(std::max(rank, 1.0)) - 1);
  }
  return result;
}

}  // namespace

Json measure_purge(const Target& target, const PurgeCostOptions& options) {
  const Database database(target);
  Pool pool = database.pool(2);
  const auto connection = pool.acquire();
  fill(connection, "purge", options.rows);
  Effects effects(connection);
  effects.expect_claims("fill", options.rows);
  TxConsumer consumer(pool, "purge");
  const Handler handler = business_handler();
  SpreadKeys keys(options.rows);
  long long claims = options.rows;

  /// Consumes messages until the slot is over. Returns the time of each message.
  const auto consume = [&] {
    std::vector<double> times;
    const auto begin = Clock::now();
    do {
      const Message message = keys.next();
      const auto start = Clock::now();
      if (consumer.consume(message, handler).outcome != Outcome::consumed) {
        throw std::runtime_error("a new key was there already");
      }
      times.push_back(microseconds_since(start));
    } while (Clock::now() - begin < options.slot);
    return times;
  };

  constexpr double none = 0;
  struct Way {
    const char* name;
    double duty;  ///< The `duty` option of the purge.
  };
  const std::array ways{Way{"alone", none}, Way{"purge", PurgeOptions().duty}, Way{"purge_without_rest", 1}};
  Json means = Json::object();
  Json removed_per_second = Json::object();
  std::map<std::string, std::vector<double>> all;
  Progress progress("rounds", options.rounds + 1);
  for (int round = -1; round < options.rounds; ++round) {  // the first warms up
    rotated(ways.size(), round + 1, [&](std::size_t i) {
      const auto& [name, duty] = ways.at(i);
      std::this_thread::sleep_for(options.rest);
      std::optional<Purging> purging;
      const auto start = Clock::now();
      if (duty != none) purging.emplace(connection, duty, options.purge_cpu);
      const std::vector<double> times = consume();
      const long long removed = purging ? purging->stop() : 0;
      const double seconds = microseconds_since(start) / 1e6;
      const auto count = static_cast<long long>(times.size());
      effects.expect_updates(name, count);
      claims += count - removed;
      if (round < 0) return;
      means[name].push_back(std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(count));
      if (purging) removed_per_second[name].push_back(static_cast<double>(removed) / seconds);
      all[name].insert(all[name].end(), times.begin(), times.end());
    });
    progress.step();
  }
  effects.expect_claims("purge", claims);
  Json spread = Json::object();
  for (const Way& way : ways) spread[way.name] = percentiles(std::move(all[way.name]));
  return {{"rows", options.rows},
          {"microseconds", means},
          {"percentiles", spread},
          {"removed_per_second", removed_per_second}};
}

}  // namespace txinbox::bench
