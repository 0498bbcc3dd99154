#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "business_work.hpp"
#include "effects.hpp"
#include "generated_source.hpp"
#include "measure.hpp"
#include "sections.hpp"

namespace txinbox::bench {
namespace {

constexpr std::size_t batch = 100;

class Loop {
 public:
  Loop(const Target& target, const LoopOptions& options)
      : options_(options), target_(target), database_(target), pool_(database_.pool(2)), checking_(pool_.acquire()) {}

  Json measure() {
    Json cost = Json::object();
    Json rates = Json::object();
    Progress progress("rounds", options_.rounds);
    for (int round = 0; round < options_.rounds; ++round) {
      rotated(2, round, [&](std::size_t i) {
        empty_inbox();
        if (i == 0) cost["consume_batch"].push_back(consume_batches(fmt::format("by-hand-{}", round)));
        if (i == 1) cost["run"].push_back(run_batches(fmt::format("run-{}", round)));
      });
      rotated(lanes.size(), round, [&](std::size_t i) {
        const auto [healthy, stuck] = lanes.at(i);
        empty_inbox();
        rates[std::to_string(healthy)][std::to_string(stuck)].push_back(run_lanes(round, healthy, stuck));
      });
      progress.step();
    }
    return {{"messages_per_round", options_.messages}, {"microseconds", cost}, {"healthy_per_second", rates}};
  }

 private:
  /// Healthy and stuck lanes. Those with stuck lanes are compared with the same healthy lanes alone.
  static constexpr std::array<std::pair<std::size_t, std::size_t>, 5> lanes = {
      {{8, 0}, {5, 0}, {5, 3}, {1, 0}, {1, 7}}};

  /// The inbox grows fast here, so each slot begins with an empty one.
  void empty_inbox() const { empty_tables(checking_, target_, {"txinbox_consumed_message"}); }

  /// The time of a message without the loop: the same source, batches and acknowledgements.
  double consume_batches(const std::string& slot) {
    TxConsumer consumer(pool_, "loop");
    long long done = 0;
    GeneratedSource source(slot, 1, [&](long long count) { done = count; });
    const auto start = Clock::now();
    while (done < options_.messages) {
      const std::vector<Incoming> incoming = source.poll(batch, std::chrono::milliseconds(0));
      std::vector<Message> messages;
      std::vector<const Incoming*> acknowledged;
      for (const Incoming& each : incoming) {
        messages.push_back(message_of(each));
        acknowledged.push_back(&each);
      }
      for (const Result& result : consumer.consume_batch(messages, empty_handler)) {
        if (result.outcome != Outcome::consumed) throw std::runtime_error("consume_batch: not all was new");
      }
      source.acknowledge(acknowledged);
    }
    return microseconds_since(start) / static_cast<double>(done);
  }

  /// The time of a message in `run`.
  double run_batches(const std::string& slot) {
    std::stop_source stop;
    TxConsumer consumer(pool_, "loop", {.stop = stop.get_token()});
    GeneratedSource source(slot, 1, [&](long long count) {
      if (count >= options_.messages) stop.request_stop();
    });
    const auto start = Clock::now();
    const RunSummary summary = run(source, consumer, message_of, empty_handler, {.batch = batch});
    if (summary.acknowledged != summary.consumed) throw std::runtime_error("run: not all was new and acknowledged");
    return microseconds_since(start) / static_cast<double>(summary.consumed);
  }

  /// The messages a second of the healthy lanes. The first message of a stuck lane always fails.
  double run_lanes(int round, std::size_t healthy, std::size_t stuck) {
    const std::string slot = fmt::format("lanes-{}-{}-{}", healthy, stuck, round);
    Effects effects(checking_);
    std::stop_source stop;
    TxConsumer consumer(pool_, "loop", {.stop = stop.get_token()});
    const auto start = Clock::now();
    long long done = 0;
    double seconds = 0;
    GeneratedSource source(slot, healthy + stuck, [&](long long count) {
      done = count;
      seconds = microseconds_since(start) / 1e6;
      if (Clock::now() - start >= options_.slot) stop.request_stop();
    });
    std::atomic<std::size_t> failures = 0;
    const RunSummary summary =
        run(source, consumer, message_of, handler_with_stuck_lanes(stuck, failures), {.batch = batch});
    if (summary.acknowledged != summary.consumed) throw std::runtime_error(slot + ": not all was new and acknowledged");
    if (summary.retries < stuck) throw std::runtime_error(slot + ": a lane that must be stuck is not");
    effects.expect_updates(slot, static_cast<long long>(summary.consumed));
    return static_cast<double>(done) / seconds;
  }

  static void empty_handler(soci::session&, Delivery&) {}

  const LoopOptions options_;
  const Target target_;
  const Database database_;
  Pool pool_;
  const Connection checking_;
};

}  // namespace

Json measure_loop(const Target& target, const LoopOptions& options) { return Loop(target, options).measure(); }

}  // namespace txinbox::bench
