// Compares the loop of a Kafka consumer with loops that people write by hand with the client library. bench/run.sh
// starts the broker, and runs this program in the same way as txinbox_bench.

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <txinbox/kafka.hpp>

#include "broker_program.hpp"
#include "broker_ways.hpp"
#include "kafka_client.hpp"

namespace txinbox::bench {
namespace {

constexpr auto topic = "bench";

/// Each way reads the topic from its beginning, with a group of its own.
class Bench {
 public:
  Bench(const Target& target, const BrokerOptions& options)
      : options_(options),
        brokers_(fmt::format("127.0.0.1:{}", options.port)),
        ways_(target, options, [](const Incoming& in) { return in.key.value(); }) {}

  nlohmann::ordered_json measure() {
    publish(brokers_, topic, options_.messages);
    return ways_.in_turns({
        {"client_alone", [&](const std::string& group) { return client_alone(group); }},
        {"source_alone", [&](const std::string& group) { return ways_.source_alone(*source(group)); }},
        {"empty_handler", [&](const std::string& group) { return ways_.empty_handler(group, *source(group)); }},
        {"by_hand", [&](const std::string& group) { return by_hand(group, true); }},
        {"by_hand_async", [&](const std::string& group) { return by_hand(group, false); }},
        {"run", [&](const std::string& group) { return ways_.run(group, *source(group), 1); }},
        {"run_4_workers", [&](const std::string& group) { return ways_.run(group, *source(group), ways_.workers); }},
    });
  }

 private:
  std::unique_ptr<Source> source(const std::string& group) const {
    return open_kafka({.brokers = brokers_, .group = group, .topics = {topic}});
  }

  double client_alone(const std::string& group) const {
    KafkaClient client(brokers_, group, topic);
    Meter meter = ways_.meter();
    while (client.poll() && meter.count()) {
    }
    return meter.per_second();
  }

  /// Polls one message, runs a transaction, and commits the offset. `waits`: whether it waits for the broker's answer
  /// to the commit of the offset.
  double by_hand(const std::string& group, bool waits) {
    KafkaClient client(brokers_, group, topic);
    std::optional<KafkaClient::Record> record;
    const auto next = [&] {
      record = client.poll();
      if (!record) throw std::runtime_error("the topic has too few messages");
      return record->key();
    };
    return ways_.by_hand(group, next, [&] { client.commit(*record, waits); });
  }

  const BrokerOptions options_;
  const std::string brokers_;
  BrokerWays ways_;
};

}  // namespace
}  // namespace txinbox::bench

int main(int argc, char** argv) {
  using namespace txinbox::bench;
  return broker_program<Bench>(argc, argv, "txinbox_bench_kafka", "Kafka");
}
