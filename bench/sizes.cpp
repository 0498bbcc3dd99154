#include <algorithm>
#include <memory>
#include <stdexcept>

#include <fmt/format.h>
#include <soci/soci.h>

#include "business_work.hpp"
#include "effects.hpp"
#include "fill.hpp"
#include "measure.hpp"
#include "sections.hpp"
#include "spread_keys.hpp"

namespace txinbox::bench {
namespace {

/// A database with an inbox of one size.
struct Sized {
  Sized(const Target& target, long long size) : rows(size), keys(size), database(target, "_" + std::to_string(size)) {
    const auto start = Clock::now();
    {
      Pool filling = database.pool(1);
      const auto connection = filling.acquire();
      fill(connection, "sizes", rows);
      Effects(connection).expect_claims("fill", rows);
    }
    fill_seconds = microseconds_since(start) / 1e6;
    pool = std::make_unique<Pool>(database.pool(2));
    checking = std::make_unique<Connection>(pool->acquire());
    effects = std::make_unique<Effects>(*checking);
    consumer = std::make_unique<TxConsumer>(*pool, "sizes");
  }

  double consume(int count) {
    std::vector<Message> messages(static_cast<std::size_t>(count));
    std::ranges::generate(messages, [&] { return keys.next(); });
    const auto start = Clock::now();
    for (const Message& each : messages) {
      if (consumer->consume(each, handler).outcome != Outcome::consumed) {
        throw std::runtime_error("a new key was there already");
      }
    }
    const double time = microseconds_since(start) / count;
    effects->expect_updates(std::to_string(rows) + " rows", count);
    if (rows < 100'000) {
      // A small table is to stay small.
      for (const Message& each : messages) {
        checking->session() << "DELETE FROM txinbox_consumed_message WHERE consumer = 'sizes' AND business_key = :key",
            soci::use(each.business_key);
      }
    }
    return time;
  }

  long long rows;
  SpreadKeys keys;
  Database database;
  double fill_seconds = 0;
  std::unique_ptr<Pool> pool;
  std::unique_ptr<Connection> checking;
  std::unique_ptr<Effects> effects;
  std::unique_ptr<TxConsumer> consumer;
  Handler handler = business_handler();
};

}  // namespace

Json measure_sizes(const Target& target, const SizeOptions& options) {
  std::vector<std::unique_ptr<Sized>> tables;
  Progress filling("tables filled", static_cast<int>(options.rows.size()));
  for (const long long rows : options.rows) {
    tables.push_back(std::make_unique<Sized>(target, rows));
    filling.step();
  }
  Json times = Json::object();
  Json fill_seconds = Json::object();
  for (auto& each : tables) {
    fill_seconds[std::to_string(each->rows)] = each->fill_seconds;
    each->consume(options.messages);
  }
  Progress progress("rounds", options.rounds);
  const auto begin = Clock::now();
  for (int round = 0; round < options.rounds; ++round) {
    if (round >= 3 && Clock::now() - begin > options.at_most) break;
    rotated(tables.size(), round, [&](std::size_t i) {
      times[std::to_string(tables[i]->rows)].push_back(tables[i]->consume(options.messages));
    });
    progress.step();
  }
  return {{"messages_per_round", options.messages}, {"fill_seconds", fill_seconds}, {"microseconds", times}};
}

}  // namespace txinbox::bench
