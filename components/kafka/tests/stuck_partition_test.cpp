// One partition of Kafka stands still, because its first message fails always. The rate of the others is printed.

#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <unordered_set>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "brokers/command_tests.hpp"
#include "kafka_broker.hpp"
#include "support/counts.hpp"
#include "support/effects.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr int partitions = 4;
constexpr int messages_each = 20'000;

/// Consumes until the partitions 1, 2 and 3 are done. Returns how many of their messages it consumed in a second.
double rate_of_others(KafkaBroker& broker, const std::string& group, bool is_stuck) {
  const EffectDatabase db;
  Pool pool = db.pool();
  KafkaOptions kafka = broker.options("stuck");
  kafka.group = group;
  const auto source = open_kafka(kafka);
  std::stop_source stop;
  TxConsumer consumer(pool, "svc", {.stop = stop.get_token()});
  constexpr std::size_t others = (partitions - 1) * messages_each;
  bool any_of_first = false;
  std::unordered_set<std::string> of_others;  // a handler runs again if its transaction is rolled back
  Clock::time_point begin;
  Clock::time_point end;
  (void)run(
      *source, consumer, [](const Incoming& in) { return Message{.business_key = std::string(in.body)}; },
      [&](soci::session& sql, Delivery& delivery) {
        if (begin == Clock::time_point()) begin = Clock::now();
        const bool is_first = delivery.message().business_key.starts_with("0/");
        if (is_first && is_stuck) throw std::runtime_error("always");
        add_effect(sql, delivery);
        any_of_first |= is_first;
        if (is_first || !of_others.insert(delivery.message().business_key).second || of_others.size() != others) return;
        end = Clock::now();
        stop.request_stop();
      });
  CHECK(of_others.size() == others);
  CHECK(any_of_first != is_stuck);
  CHECK(db.number("select count(*) from effect where id not like '0/%'") == others);
  return static_cast<double>(others) / std::chrono::duration<double>(end - begin).count();
}

TEST_CASE("Kafka: a partition that stands still does not slow the others" * doctest::skip(messages_for_memory() == 0)) {
  KafkaBroker broker;
  (void)broker.create("stuck");
  for (int i = 0; i < messages_each; ++i) {
    for (int partition = 0; partition < partitions; ++partition) {
      broker.publisher().publish("stuck",
                                 {.body = std::to_string(partition) + "/" + std::to_string(i), .partition = partition});
    }
  }
  broker.flush();
  std::array<double, 3> ratios{};
  for (std::size_t round = 0; round < ratios.size(); ++round) {
    const std::string group = "round" + std::to_string(round);
    const double before = rate_of_others(broker, group + "-whole", false);
    const double after = rate_of_others(broker, group + "-stuck", true);
    ratios.at(round) = after / before;
    note("the three other partitions: " + std::to_string(before) + " messages a second, and " + std::to_string(after) +
         " while one stands still");
  }
  std::ranges::sort(ratios);
  note("median of the ratios: " + std::to_string(ratios[ratios.size() / 2]));
}

}  // namespace
}  // namespace txinbox::test
