#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <soci/soci.h>
#include <txinbox/outbox_relay.hpp>
#include <txinbox/txinbox.hpp>

#include "business_work.hpp"
#include "effects.hpp"
#include "generated_source.hpp"
#include "measure.hpp"
#include "outbox.hpp"
#include "sections.hpp"
#include "watched_relay.hpp"

namespace txinbox::bench {
namespace {

constexpr std::size_t batch = 100;

/// The thing that grows, and the time of one message in microseconds for each size.
struct Curve {
  std::string name;
  std::vector<int> sizes;
  std::function<double(int size, int round)> measure;
  int most_rounds = 1000;
};

class Growth {
 public:
  Growth(const Target& target, const GrowthOptions& options)
      : target_(target), options_(options), database_(target), pool_(database_.pool(most_workers + 2)) {}

  Json measure() {
    const std::vector<Curve> curves = {
        {"batch", {1, 3, 10, 30, 100, 300, 1000}, [&](int n, int round) { return in_batches("batch", n, 0, round); }},
        {"batch_at_once", {1, 3, 10, 30, 100, 300, 1000}, [&](int n, int round) { return at_once(n, round); }},
        {"failing", {0, 1, 3, 10, 30, 90}, [&](int n, int round) { return in_batches("failing", 100, n, round); }},
        {"workers", {1, 2, 4, most_workers}, [&](int n, int round) { return with_workers(n, round); }},
        {"lanes", {0, 1, 4, 16, 64, 256}, [&](int n, int round) { return beside_stuck_lanes(n, round); }, 3},
    };
    Json result = Json::object();
    Progress progress("rounds", options_.rounds + static_cast<int>(options_.outbox.size()));
    for (int round = 0; round < options_.rounds; ++round) {
      for (const Curve& curve : curves) {
        if (round >= curve.most_rounds) continue;
        Json& times = result[curve.name];
        rotated(curve.sizes.size(), round, [&](std::size_t i) {
          empty_inbox();
          times[std::to_string(curve.sizes[i])].push_back(curve.measure(curve.sizes[i], round));
        });
      }
      progress.step();
    }
    for (const int rows : options_.outbox) {
      result["outbox"][std::to_string(rows)] = relay_times(rows);
      progress.step();
    }
    return result;
  }

 private:
  static constexpr int most_workers = 8;
  static constexpr std::size_t healthy_lanes = 4;

  /// Each measurement begins with an empty inbox.
  void empty_inbox() {
    empty_tables(pool_.acquire().session(), target_, {"txinbox_consumed_message", "txinbox_failed_message"});
  }

  /// Consumes batches of this size until the time is over. The first `failing` keys are in each batch, and fail each
  /// time. Returns the time of one message.
  double in_batches(const char* name, int size, int failing, int round) {
    const std::string prefix = fmt::format("{}-{}-{}-{}", name, size, failing, round);
    TxConsumer consumer(pool_, "growth");
    const Handler work = business_handler();
    const Handler handler = [&](soci::session& sql, Delivery& delivery) {
      work(sql, delivery);
      if (delivery.message().business_key.starts_with("fails")) throw std::runtime_error("this key fails");
    };
    std::vector<Message> bad = messages("fails", 0, failing);
    return timed(prefix, [&](int done) {
      std::vector<Message> all = messages(prefix, done, size - failing);
      all.insert(all.end(), bad.begin(), bad.end());
      const auto results = consumer.consume_batch(all, handler);
      const auto consumed =
          std::ranges::count_if(results, [](const Result& each) { return each.outcome == Outcome::consumed; });
      if (consumed != size - failing) throw std::runtime_error(prefix + ": a batch has another result");
      return std::pair(size, size - failing);
    });
  }

  double at_once(int size, int round) {
    const std::string prefix = fmt::format("at-once-{}-{}", size, round);
    TxConsumer consumer(pool_, "growth");
    const BatchHandler handler = business_batch_handler();
    return timed(prefix, [&](int done) {
      for (const Result& each : consumer.consume_batch(messages(prefix, done, size), handler)) {
        if (each.outcome != Outcome::consumed) throw std::runtime_error(prefix + ": not all was new");
      }
      return std::pair(size, size);
    });
  }

  /// Calls `step` until the time is over. It gets the number of new messages before it, and returns how many messages
  /// it has taken and how many of them were consumed. Returns the time of one message.
  double timed(const std::string& name, const std::function<std::pair<int, int>(int)>& step) {
    const Connection checking = pool_.acquire();
    Effects effects(checking);
    int taken = 0, consumed = 0;
    const auto start = Clock::now();
    do {
      const auto [in_step, of_them] = step(consumed);
      taken += in_step;
      consumed += of_them;
    } while (Clock::now() - start < options_.slot);
    const double time = microseconds_since(start) / taken;
    effects.expect_updates(name, consumed);
    return time;
  }

  double with_workers(int workers, int round) {
    return in_loop(fmt::format("workers-{}-{}", workers, round), most_workers, 0, workers, options_.slot);
  }

  double beside_stuck_lanes(int stuck, int round) {
    return in_loop(fmt::format("lanes-{}-{}", stuck, round), healthy_lanes, static_cast<std::size_t>(stuck), 1,
                   10 * options_.slot);
  }

  /// Runs `run` for this time. The first message of a stuck lane always fails. The time begins when each stuck
  /// lane has failed several times: the tries are far apart then, as they are most of the time. Returns the time of a
  /// message of the healthy lanes.
  double in_loop(const std::string& name, std::size_t healthy, std::size_t stuck, int workers,
                 std::chrono::milliseconds slot) {
    constexpr std::size_t tries = 5;
    const Connection checking = pool_.acquire();
    Effects effects(checking);
    std::stop_source stop;
    TxConsumer consumer(pool_, "growth", {.stop = stop.get_token()});
    std::atomic<std::size_t> failures = 0;
    std::optional<Clock::time_point> start;
    long long before = 0;
    double time = 0;
    GeneratedSource source(name, healthy + stuck, [&](long long count) {
      if (!start) {
        if (failures < tries * stuck) return;
        start = Clock::now();
        before = count;
      } else {
        time = microseconds_since(*start) / static_cast<double>(count - before);
        if (Clock::now() - *start >= slot) stop.request_stop();
      }
    });
    const RunSummary summary = run(source, consumer, message_of, handler_with_stuck_lanes(stuck, failures),
                                   {.batch = batch,
                                    .workers = static_cast<std::size_t>(workers),
                                    .breaker = {.failures = 0}});  // so many stuck lanes would trip it
    if (summary.acknowledged != summary.consumed || time <= 0)
      throw std::runtime_error(name + ": not all was consumed");
    effects.expect_updates(name, static_cast<long long>(summary.consumed));
    return time;
  }

  /// The times of one message in a relay's first batches, while this number of messages waits in the outbox.
  Json relay_times(int rows) {
    constexpr int batches = 5;
    constexpr int size = 500;
    const Database database(target_, "_growth");
    Pool pool = database.pool(2);
    fill_outbox(pool.acquire(), rows, rows / 10);
    const auto publish = [](std::span<const OutgoingMessage> messages) {
      return std::vector<PublishResult>(messages.size());
    };
    WatchedRelay relay(pool, publish, {.batch = size});
    relay.wait_for(size);  // the relay has found its place
    Json times = Json::array();
    for (int i = 1; i <= batches; ++i) {
      const auto start = Clock::now();
      relay.wait_for(size + static_cast<long long>(size) * i);
      times.push_back(microseconds_since(start) / size);
    }
    return times;
  }

  const Target target_;
  const GrowthOptions options_;
  const Database database_;
  Pool pool_;
};

}  // namespace

Json measure_growth(const Target& target, const GrowthOptions& options) { return Growth(target, options).measure(); }

}  // namespace txinbox::bench
