#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>

#include <fmt/format.h>
#include <soci/soci.h>

#include "business_work.hpp"
#include "by_hand.hpp"
#include "effects.hpp"
#include "measure.hpp"
#include "sections.hpp"

namespace txinbox::bench {
namespace {

/// Runs `one` repeatedly on this number of threads, each with its own keys. Returns the number of messages.
template <class MakeWorker>
long long run_for(std::chrono::milliseconds time, int threads, const std::string& prefix, double& seconds,
                  MakeWorker&& make_worker) {
  std::atomic<bool> stop{false};
  std::atomic<long long> done{0};
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(threads));
  const auto start = Clock::now();
  {
    std::vector<std::jthread> workers;
    for (int t = 0; t < threads; ++t) {
      workers.emplace_back([&, t] {
        try {
          auto one = make_worker(t);
          for (int i = 0; !stop; ++i) {
            one(Message{.business_key = fmt::format("{}-{}-{:08}", prefix, t, i * threads + t)});
            ++done;
          }
        } catch (...) {
          errors[static_cast<std::size_t>(t)] = std::current_exception();
        }
      });
    }
    std::this_thread::sleep_for(time);
    stop = true;
  }
  seconds = microseconds_since(start) / 1e6;
  for (const auto& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return done;
}

}  // namespace

Json measure_threads(const Target& target, const ThreadOptions& options) {
  const Database database(target);
  const auto most = static_cast<std::size_t>(*std::ranges::max_element(options.threads));
  Pool pool = database.pool(most);
  Pool hand_pool = database.pool(most);
  // In the variant by hand, each thread has its own connection, which is open from the start.
  struct Hand {
    explicit Hand(Pool& from) : connection(from.acquire()), api(client_api(connection)) {}
    Connection connection;
    std::unique_ptr<ClientApi> api;
  };
  std::vector<std::unique_ptr<Hand>> hands;
  for (std::size_t i = 0; i < most; ++i) hands.push_back(std::make_unique<Hand>(hand_pool));
  Pool checking = database.pool(1);
  const auto connection = checking.acquire();
  Effects effects(connection);
  long long claims = 0;

  TxConsumer consumer(pool, "consume");
  const Handler handler = business_handler();
  Json by_hand = Json::object();
  Json consume = Json::object();
  const auto measure = [&](Json& into, const char* name, int threads, int round, auto make_worker) {
    double seconds = 0;
    const auto prefix = fmt::format("{}-{}-{}", name, threads, round);
    const auto count = run_for(options.slot, threads, prefix, seconds, make_worker);
    effects.expect_updates(prefix, count);
    claims += count;
    if (round >= 0) into[std::to_string(threads)].push_back(static_cast<double>(count) / seconds);
  };
  Progress progress("threads", (options.rounds + 1) * static_cast<int>(options.threads.size()));
  for (int round = -1; round < options.rounds; ++round) {  // the first opens connections and warms up
    for (const int threads : options.threads) {
      rotated(2, round + 1, [&](std::size_t variant) {
        if (variant == 0) {
          measure(by_hand, "by_hand", threads, round, [&](int t) {
            return [&api = *hands[static_cast<std::size_t>(t)]->api](const Message& m) { consume_by_hand(api, m); };
          });
        } else {
          measure(consume, "consume", threads, round,
                  [&](int) { return [&](const Message& m) { (void)consumer.consume(m, handler); }; });
        }
      });
      progress.step();
    }
  }
  effects.expect_claims("threads", claims);
  return {{"messages_per_second", {{"by_hand", by_hand}, {"consume", consume}}}};
}

}  // namespace txinbox::bench
