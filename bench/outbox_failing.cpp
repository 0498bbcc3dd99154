#include <array>
#include <span>
#include <vector>

#include <soci/soci.h>
#include <txinbox/outbox_relay.hpp>

#include "measure.hpp"
#include "outbox.hpp"
#include "watched_relay.hpp"

namespace txinbox::bench {

/// The outbox has one message for each key. The first ones fail each time. The time is that until all others are
/// published.
Json measure_outbox_failing(const Target& target, const OutboxOptions& options) {
  const int healthy = options.keys - options.failing;
  struct Way {
    const char* name;
    int rows;
  };
  const std::array<Way, 2> ways{Way{"without", healthy}, Way{"with", options.keys}};
  Json rates = Json::object();
  Progress progress("rounds with keys that fail", options.failing_rounds);
  for (int round = 0; round < options.failing_rounds; ++round) {
    rotated(ways.size(), round, [&](std::size_t i) {
      const Way& way = ways.at(i);
      const auto failing = static_cast<unsigned long long>(way.rows - healthy);
      const Database database(target);
      Pool pool = database.pool(2);
      fill_outbox(pool.acquire(), way.rows, options.keys);
      const auto publish = [&](std::span<const OutgoingMessage> messages) {
        std::vector<PublishResult> results(messages.size());
        for (std::size_t each = 0; each < messages.size(); ++each) {
          if (outbox_number(messages[each].id) >= failing) continue;
          results[each] = {.status = PublishStatus::failed, .error = "the receiver has refused it"};
        }
        return results;
      };
      const auto start = Clock::now();
      WatchedRelay relay(pool, publish, {.batch = options.batch});
      relay.wait_for(healthy);
      rates[way.name].push_back(healthy / (microseconds_since(start) / 1e6));
    });
    progress.step();
  }
  return {{"failing", options.failing}, {"healthy", healthy}, {"messages_per_second", rates}};
}

}  // namespace txinbox::bench
