#include <algorithm>
#include <array>
#include <memory>
#include <stdexcept>

#include <soci/soci.h>
#include <txinbox/outbox.hpp>
#include <txinbox/tx_consumer.hpp>

#include "client_api.hpp"
#include "effects.hpp"
#include "measure.hpp"
#include "outbox.hpp"

namespace txinbox::bench {
namespace {

/// The objects that a handler keeps with its connection.
struct Work {
  explicit Work(soci::session& sql) : api(client_api(sql)) {}
  std::unique_ptr<ClientApi> api;
};

OutgoingMessage outgoing(const Message& message) {
  return {.topic = "orders", .key = message.business_key, .type = "OrderBooked", .payload = outbox_payload()};
}

void require_rows(soci::session& sql, long long expected) {
  long long rows = 0;
  sql << "SELECT count(*) FROM txinbox_outbox_message", soci::into(rows);
  if (rows != expected) throw std::runtime_error("the outbox does not have one row for each message");
}

}  // namespace

Json measure_outbox_add(const Target& target, const OutboxOptions& options) {
  const Database database(target);
  Pool pool = database.pool(2);
  const auto connection = pool.acquire();
  Effects effects(connection);
  unsigned long long next_id = 0;

  struct Way {
    const char* name;
    TxConsumer consumer;
    Handler handler;
    bool adds = true;
  };
  const auto update = [](soci::session& sql, Delivery& delivery) -> ClientApi& {
    ClientApi& api = *delivery.per_connection<Work>(sql).api;
    api.update(row_of(delivery.message()));
    return api;
  };
  std::array ways{
      Way{"no_message", TxConsumer(pool, "no_message"), [&](soci::session& sql, Delivery& d) { update(sql, d); },
          false},
      Way{"by_hand", TxConsumer(pool, "by_hand"),
          [&](soci::session& sql, Delivery& delivery) {
            OutgoingMessage message = outgoing(delivery.message());
            message.id = outbox_id(next_id++);
            update(sql, delivery).insert_outgoing(message);
          }},
      Way{"add", TxConsumer(pool, "add"),
          [&](soci::session& sql, Delivery& delivery) {
            update(sql, delivery);
            Outbox::add(sql, outgoing(delivery.message()));
          }},
  };

  long long rows = 0;
  const auto run = [&](Way& way, int first, int count) {
    const auto job = messages("order", first, count);
    const auto start = Clock::now();
    for (const Message& each : job) {
      if (way.consumer.consume(each, way.handler).outcome != Outcome::consumed) {
        throw std::runtime_error("a new key was there already");
      }
    }
    const double time = microseconds_since(start) / count;
    effects.expect_updates(way.name, count);
    if (way.adds) rows += count;
    return time;
  };
  constexpr int warm_up = 100;
  double each = 0;
  for (Way& way : ways) each = run(way, 0, warm_up);
  const int count = std::max(20, static_cast<int>(static_cast<double>(options.slot.count()) * 1000 / each));

  Json times = Json::object();
  for (const Way& way : ways) times[way.name] = Json::array();
  Progress progress("rounds", options.rounds);
  for (int round = 0; round < options.rounds; ++round) {
    rotated(ways.size(), round,
            [&](std::size_t i) { times[ways.at(i).name].push_back(run(ways.at(i), warm_up + round * count, count)); });
    progress.step();
  }
  require_rows(connection, rows);
  return {{"messages_per_round", count}, {"microseconds", times}};
}

}  // namespace txinbox::bench
