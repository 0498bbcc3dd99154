#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include <soci/soci.h>
#include <txinbox/outbox.hpp>
#include <txinbox/outbox_relay.hpp>

#include "measure.hpp"
#include "outbox.hpp"
#include "watched_relay.hpp"

namespace txinbox::bench {

Json measure_outbox_delay(const Target& target, const OutboxOptions& options) {
  const Database database(target);
  Pool pool = database.pool(2);
  const auto connection = pool.acquire();
  soci::session& sql = connection;
  Clock::time_point published;  // the relay's thread writes it before it reports the row as removed
  WatchedRelay relay(pool,
                     [&](std::span<const OutgoingMessage> messages) {
                       published = Clock::now();
                       return std::vector<PublishResult>(messages.size());
                     },
                     {});
  unsigned long long sent = 0;

  const auto delay = [&](bool wake) {
    // The wait is between 0 and 100 ms, so that messages are added at all times between two polls.
    std::this_thread::sleep_for(std::chrono::milliseconds(sent * 37 % 100));
    soci::transaction transaction(sql);
    Outbox::add(sql, {.topic = "orders",
                      .key = "order-" + std::to_string(sent),
                      .type = "OrderBooked",
                      .payload = outbox_payload(),
                      .id = outbox_id(sent)});
    transaction.commit();
    const auto committed = Clock::now();
    if (wake) relay->wake();
    relay.wait_for(static_cast<long long>(++sent));
    // The relay can see the row before the client has the reply to its COMMIT.
    return std::max(0.0, std::chrono::duration<double, std::milli>(published - committed).count());
  };

  delay(true);
  Json times = {{"wake", Json::array()}, {"poll", Json::array()}};
  Progress progress("delays", options.rounds);
  for (int round = 0; round < options.rounds; ++round) {
    rotated(2, round, [&](std::size_t i) {
      for (int n = 0; n < options.delays; ++n) times[i == 0 ? "wake" : "poll"].push_back(delay(i == 0));
    });
    progress.step();
  }
  return times;
}

}  // namespace txinbox::bench
