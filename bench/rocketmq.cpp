// Measures the loop of a RocketMQ consumer. There is no other client in C++ to compare it with. bench/run.sh starts the
// broker, makes the topic and the group, and runs this program in the same way as txinbox_bench.

#include <algorithm>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <txinbox/rocketmq.hpp>

#include "broker_program.hpp"
#include "broker_ways.hpp"

namespace txinbox::bench {
namespace {

/// All slots have the same group, because a new group can begin at the end of the topic. So the topic gets new messages
/// before each slot, and this time is not measured.
class Bench {
 public:
  Bench(const Target& target, const BrokerOptions& options)
      : options_(options),
        topic_("bench-" + target.name),
        ways_(target, options, [](const Incoming& in) { return in.key.value(); }),
        publisher_(rocketmq_publisher({.server = {.host = "127.0.0.1", .port = options.port}})) {}

  nlohmann::ordered_json measure() {
    (void)ways_.source_alone(*source());  // a broker in Java that has just started is several times slower
    return ways_.in_turns({
        {"source_alone", [&](const std::string&) { return ways_.source_alone(*source()); }},
        {"empty_handler", [&](const std::string& slot) { return ways_.empty_handler(slot, *source()); }},
        {"run", [&](const std::string& slot) { return ways_.run(slot, *source(), 1); }},
        {"run_4_workers", [&](const std::string& slot) { return ways_.run(slot, *source(), ways_.workers); }},
    });
  }

 private:
  /// More than the messages that earlier slots took and did not acknowledge. The broker can keep them back for a while.
  static constexpr int invisible = 5'000;

  std::unique_ptr<Source> source() {
    while (published_ < ways_.acknowledged() + options_.messages + invisible) publish(500);
    return open_rocketmq({.server = {.host = "127.0.0.1", .port = options_.port},
                          .topic = topic_,
                          .group = topic_,
                          .invisible = std::chrono::seconds(10)});
  }

  /// Tries again for a minute, because a new topic is not known everywhere for some seconds.
  void publish(int count) {
    std::vector<OutgoingMessage> waiting;
    for (int i = 0; i < count; ++i) {
      const std::string key = fmt::format("-{:08}", published_++);
      waiting.push_back({.topic = topic_, .key = key, .payload = std::string(100, 'x'), .id = key});
    }
    const auto give_up = Clock::now() + std::chrono::minutes(1);
    while (true) {
      const std::vector<PublishResult> results = publisher_(waiting);
      std::vector<OutgoingMessage> rest;
      for (std::size_t i = 0; i < results.size(); ++i) {
        if (results[i].status == PublishStatus::confirmed) continue;
        if (Clock::now() > give_up) throw std::runtime_error("publishing: " + results[i].error);
        rest.push_back(std::move(waiting[i]));
      }
      if (rest.empty()) return;
      waiting = std::move(rest);
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  }

  const BrokerOptions options_;
  const std::string topic_;
  BrokerWays ways_;
  Publisher publisher_;
  long long published_ = 0;
};

}  // namespace
}  // namespace txinbox::bench

int main(int argc, char** argv) {
  using namespace txinbox::bench;
  return broker_program<Bench>(argc, argv, "txinbox_bench_rocketmq", "RocketMQ");
}
