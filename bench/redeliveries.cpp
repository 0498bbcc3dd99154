#include <algorithm>
#include <random>
#include <stdexcept>

#include <fmt/format.h>
#include <soci/soci.h>

#include "business_work.hpp"
#include "effects.hpp"
#include "measure.hpp"
#include "sections.hpp"

namespace txinbox::bench {
namespace {

constexpr RecentKeys memory{.capacity = 100'000};

/// Messages of a storm of redeliveries. A fifth of them are new. Each of the others is a copy of one of the last 1000
/// new messages.
std::vector<Message> storm(const std::string& prefix, int count, int& new_messages) {
  std::mt19937 random(5);
  std::vector<Message> result;
  new_messages = 0;
  for (int i = 0; i < count; ++i) {
    int number = new_messages;
    if (i % 5 == 0) {
      ++new_messages;
    } else {
      number -= 1 + static_cast<int>(random() % static_cast<unsigned>(std::min(new_messages, 1000)));
    }
    result.push_back(messages(prefix, number, 1).front());
  }
  return result;
}

}  // namespace

Json measure_redeliveries(const Target& target, const RedeliveryOptions& options) {
  const Database database(target);
  Pool pool = database.pool(2);
  const auto connection = pool.acquire();
  Effects effects(connection);
  const Handler handler = business_handler();
  long long claims = 0;

  // The times of a message, in microseconds.
  Json without = Json::array();
  Json with = Json::array();
  Json from_memory = Json::array();
  const auto measure_storm = [&](Json& into, const std::string& name, int round, const RecentKeys& recent) {
    TxConsumer consumer(pool, name, {.recent_keys = recent});
    int new_messages = 0;
    const auto prefix = fmt::format("{}-{}", name, round);
    const auto deliveries = storm(prefix, options.messages, new_messages);
    const auto start = Clock::now();
    for (const Message& each : deliveries) (void)consumer.consume(each, handler);
    into.push_back(microseconds_since(start) / static_cast<double>(deliveries.size()));
    effects.expect_updates(prefix, new_messages);
    claims += new_messages;
  };
  Progress progress("rounds", options.rounds);
  for (int round = 0; round < options.rounds; ++round) {
    rotated(2, round, [&](std::size_t i) {
      if (i == 0) measure_storm(without, "storm", round, {});
      if (i == 1) measure_storm(with, "storm_with_memory", round, memory);
    });

    TxConsumer consumer(pool, "remembered", {.recent_keys = memory});
    const auto remembered = messages(fmt::format("remembered-{}", round), 0, 200);
    for (const Message& each : remembered) (void)consumer.consume(each, handler);
    const auto start = Clock::now();
    long long duplicates = 0;
    long long all = 0;
    do {
      for (const Message& each : remembered) {
        if (consumer.consume(each, handler).outcome == Outcome::already_consumed) ++duplicates;
      }
      all += static_cast<long long>(remembered.size());
    } while (Clock::now() - start < std::chrono::milliseconds(100));
    from_memory.push_back(microseconds_since(start) / static_cast<double>(all));
    if (duplicates != all) throw std::runtime_error("a redelivered key was not taken for consumed");
    effects.expect_updates("from memory", static_cast<long long>(remembered.size()));
    claims += static_cast<long long>(remembered.size());
    progress.step();
  }
  effects.expect_claims("redeliveries", claims);
  return {{"messages_per_round", options.messages},
          {"microseconds", {{"without_memory", without}, {"with_memory", with}, {"from_memory", from_memory}}}};
}

}  // namespace txinbox::bench
