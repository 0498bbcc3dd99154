// Compares the loop of a RabbitMQ consumer with loops that people write by hand with the client library. bench/run.sh
// starts the broker, and runs this program in the same way as txinbox_bench.

#include <memory>
#include <stdexcept>
#include <string>

#include <nlohmann/json.hpp>

#include <txinbox/rabbitmq.hpp>

#include "broker_program.hpp"
#include "broker_ways.hpp"
#include "rabbitmq_client.hpp"

namespace txinbox::bench {
namespace {

constexpr auto queue = "bench";
/// The client by hand gets the prefetch of the source's defaults.
const std::uint16_t prefetch = RabbitMqOptions{}.prefetch;

/// RabbitMQ removes what is acknowledged. So the queue is filled before each slot, and this time is not measured.
class Bench {
 public:
  Bench(const Target& target, const BrokerOptions& options)
      : options_(options), ways_(target, options, [](const Incoming& in) { return in.id; }), producer_(options.port) {}

  nlohmann::ordered_json measure() {
    producer_.create(queue);
    return ways_.in_turns({
        {"client_alone", [&](const std::string&) { return client_alone(); }},
        {"source_alone", [&](const std::string&) { return ways_.source_alone(*source()); }},
        {"empty_handler", [&](const std::string& slot) { return ways_.empty_handler(slot, *source()); }},
        {"by_hand", [&](const std::string& slot) { return by_hand(slot); }},
        {"run", [&](const std::string& slot) { return ways_.run(slot, *source(), 1); }},
        {"run_4_workers", [&](const std::string& slot) { return ways_.run(slot, *source(), ways_.workers); }},
    });
  }

 private:
  void fill() { producer_.fill(queue, options_.messages, published_); }

  std::unique_ptr<Source> source() {
    fill();
    RabbitMqOptions options;
    options.server.host = "127.0.0.1";
    options.server.port = options_.port;
    options.server.password = "guest";
    options.queue = queue;
    return open_rabbitmq(options);
  }

  std::unique_ptr<RabbitMqClient> client() {
    fill();
    auto client = std::make_unique<RabbitMqClient>(options_.port);
    client->consume(queue, prefetch);
    return client;
  }

  /// Acknowledges every 100 messages.
  double client_alone() {
    const auto client = this->client();
    Meter meter = ways_.meter();
    for (bool goes_on = true; goes_on;) {
      const auto record = client->poll();
      if (!record) throw std::runtime_error("the queue has too few messages");
      goes_on = meter.count();
      if (meter.done() % 100 == 0) client->acknowledge(*record, true);
    }
    const double rate = meter.per_second();
    client->close();
    return rate;
  }

  /// Polls one message, runs a transaction, and acknowledges it.
  double by_hand(const std::string& slot) {
    const auto client = this->client();
    std::unique_ptr<RabbitMqClient::Record> record;
    const auto next = [&] {
      record = client->poll();
      if (!record) throw std::runtime_error("the queue has too few messages");
      return record->message_id();
    };
    const double rate = ways_.by_hand(slot, next, [&] { client->acknowledge(*record, false); });
    client->close();
    return rate;
  }

  const BrokerOptions options_;
  BrokerWays ways_;
  RabbitMqClient producer_;
  int published_ = 0;
};

}  // namespace
}  // namespace txinbox::bench

int main(int argc, char** argv) {
  using namespace txinbox::bench;
  return broker_program<Bench>(argc, argv, "txinbox_bench_rabbitmq", "RabbitMQ");
}
