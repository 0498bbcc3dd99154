// Compares the loop of a Kafka consumer with loops that people write by hand with the client library. bench/run.sh
// starts the broker, and runs this program in the same way as txinbox_bench.

#include <chrono>
#include <functional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <soci/soci.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <txinbox/kafka.hpp>
#include <txinbox/txinbox.hpp>

#include "business_work.hpp"
#include "by_hand.hpp"
#include "database.hpp"
#include "effects.hpp"
#include "kafka_client.hpp"
#include "measure.hpp"
#include "program.hpp"

namespace txinbox::bench {
namespace {

using Json = nlohmann::ordered_json;
using std::chrono::milliseconds;

struct Options {
  std::string brokers;
  int rounds = 5;
  int messages = 200'000;  ///< The number of messages in the topic.
  int slot_ms = 2'000;
};

constexpr auto topic = "bench";

/// Counts messages and measures their rate. The time begins with the first message, so it does not include the join of
/// the group.
class Meter {
 public:
  explicit Meter(milliseconds slot) : slot_(slot) {}

  /// Call it for each message. Returns false when the time is over.
  bool count() {
    if (done_++ == 0) start_ = Clock::now();
    return Clock::now() - start_ < slot_;
  }

  long long done() const { return done_; }
  double per_second() const { return per_second(done_); }

  /// The rate, if only `done` messages were finished.
  double per_second(long long done) const { return static_cast<double>(done) * 1e6 / microseconds_since(start_); }

 private:
  milliseconds slot_;
  long long done_ = 0;
  Clock::time_point start_ = Clock::now();
};

class Bench {
 public:
  Bench(const Target& target, const Options& options)
      : options_(options),
        name_(target.name),
        database_(target),
        pool_(database_.pool(workers)),
        checking_(pool_.acquire()) {}

  Json run() {
    publish(options_.brokers, topic, options_.messages);
    struct Way {
      const char* name;
      std::function<double(const std::string& group)> measure;
    };
    const std::vector<Way> ways = {
        {"client_alone", [&](const std::string& group) { return client_alone(group); }},
        {"empty_handler",
         [&](const std::string& group) {
           return loop(
               group, 1, [](soci::session&, Delivery&) {}, 0);
         }},
        {"by_hand", [&](const std::string& group) { return by_hand(group, true); }},
        {"by_hand_async", [&](const std::string& group) { return by_hand(group, false); }},
        {"run", [&](const std::string& group) { return loop(group, 1, business_handler(), 1); }},
        {"run_4_workers", [&](const std::string& group) { return loop(group, workers, business_handler(), 1); }},
    };
    Json rates = Json::object();
    Progress progress("rounds", options_.rounds);
    for (int round = 0; round < options_.rounds; ++round) {
      rotated(ways.size(), round, [&](std::size_t i) {
        rates[ways[i].name].push_back(ways[i].measure(fmt::format("{}-{}-{}", name_, ways[i].name, round)));
      });
      progress.step();
    }
    return {{"messages_per_second", rates}};
  }

 private:
  static constexpr std::size_t workers = 4;

  milliseconds slot() const { return milliseconds(options_.slot_ms); }

  double client_alone(const std::string& group) const {
    KafkaClient client(options_.brokers, group, topic);
    Meter meter(slot());
    for (int left = options_.messages; left > 0 && client.poll(); --left) {
      if (!meter.count()) break;
    }
    return meter.per_second();
  }

  /// Polls one message, runs a transaction, and commits the offset. `waits`: whether it waits for the broker's answer
  /// to the commit of the offset.
  double by_hand(const std::string& group, bool waits) {
    const Connection connection = pool_.acquire();
    const auto api = client_api(connection);
    Effects effects(checking_);
    KafkaClient client(options_.brokers, group, topic);
    Meter meter(slot());
    for (bool goes_on = true; goes_on;) {
      const auto record = client.poll();
      if (!record) throw std::runtime_error("the topic has too few messages");
      if (!consume_by_hand(*api, {.business_key = group + record->key()})) throw std::runtime_error("a duplicate");
      client.commit(*record, waits);
      goes_on = meter.count();
    }
    const double rate = meter.per_second();
    effects.expect_updates(group, meter.done());
    return rate;
  }

  /// Runs the library's loop with batches of 100. `updates`: the number of updates for each message.
  double loop(const std::string& group, std::size_t threads, const Handler& handler, int updates) {
    Effects effects(checking_);
    TxConsumer consumer(pool_, "bench");
    const auto source = open_kafka({.brokers = options_.brokers, .group = group, .topics = {topic}});
    std::stop_source stop;
    Meter meter(slot());
    const MessageOf message_of = [&](const Incoming& in) {
      if (!meter.count()) stop.request_stop();
      return Message{.business_key = group + std::string(in.key.value())};
    };
    const auto summary = txinbox::run(*source, consumer, message_of, handler,
                                      {.workers = threads,
                                       .order = threads > 1 ? Order::key : Order::lane,
                                       .stop = stop.get_token(),
                                       .dead_letter = [](const DeadLetter&) {}});
    const double rate = meter.per_second(static_cast<long long>(summary.settled));
    if (summary.settled != summary.consumed) throw std::runtime_error(group + ": not all was new and acknowledged");
    effects.expect_updates(group, static_cast<long long>(summary.consumed) * updates);
    return rate;
  }

  const Options options_;
  const std::string name_;  ///< Part of the group's name: the group of another database has already read the topic.
  const Database database_;
  Pool pool_;
  const Connection checking_;
};

}  // namespace
}  // namespace txinbox::bench

int main(int argc, char** argv) {
  using namespace txinbox::bench;
  CLI::App app("Measures the loop of a Kafka consumer");
  Target target;
  Options options;
  add_target(app, target, {"sqlite3", "mariadb", "postgresql"});
  app.add_option("--brokers", options.brokers)->required();
  app.add_option("--rounds", options.rounds);
  app.add_option("--messages", options.messages, "In the topic");
  app.add_option("--slot-ms", options.slot_ms);
  CLI11_PARSE(app, argc, argv);
  return print_figures("txinbox_bench_kafka", [&] { return Bench(target, options).run(); });
}
