#include <sys/resource.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>

#include <fmt/format.h>
#include <soci/soci.h>
#include <txinbox/retention.hpp>

#include "business_work.hpp"
#include "effects.hpp"
#include "fill.hpp"
#include "measure.hpp"
#include "sections.hpp"
#include "spread_keys.hpp"

namespace txinbox::bench {
namespace {

constexpr long long smallest_large_table = 100'000;

double number(soci::session& sql, const std::string& query) {
  double value = 0;
  sql << query, soci::into(value);
  return value;
}

/// The size of the inbox with its indexes, in bytes on the disk. For SQLite, of the whole file.
double bytes_on_disk(soci::session& sql, const std::string& database) {
  if (database == "sqlite3") return number(sql, "PRAGMA page_count") * number(sql, "PRAGMA page_size");
  if (database == "postgresql") return number(sql, "SELECT pg_total_relation_size('txinbox_consumed_message')");
  return number(sql, fmt::format("SELECT file_size FROM information_schema.{} "
                                 "WHERE name = CONCAT(DATABASE(), '/txinbox_consumed_message')",
                                 database == "mysql" ? "innodb_tablespaces" : "innodb_sys_tablespaces"));
}

/// The memory that the database keeps for pages of tables, in bytes. For SQLite, of one connection.
double cache_bytes(soci::session& sql, const std::string& database) {
  if (database == "sqlite3") {
    const double pages_or_kib = number(sql, "PRAGMA cache_size");
    return pages_or_kib < 0 ? pages_or_kib * -1024 : pages_or_kib * number(sql, "PRAGMA page_size");
  }
  if (database == "postgresql") return number(sql, "SELECT pg_size_bytes(current_setting('shared_buffers'))");
  return number(sql, "SELECT @@innodb_buffer_pool_size");
}

/// The largest resident memory that this process has had, in KiB.
double peak_resident_kib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss);
}

/// A database with an inbox of one size.
struct Sized {
  Sized(const Target& target, long long size) : rows(size), keys(size), database(target, "_" + std::to_string(size)) {
    const auto start = Clock::now();
    {
      Pool filling = database.pool_for_filling();
      const auto connection = filling.acquire();
      fill(connection, "sizes", rows);
      Effects(connection).expect_claims("fill", rows);
    }
    fill_seconds = microseconds_since(start) / 1e6;
    pool = std::make_unique<Pool>(database.pool(2));
    checking = std::make_unique<Connection>(pool->acquire());
    disk_bytes = bytes_on_disk(checking->session(), target.name);
    effects = std::make_unique<Effects>(*checking);
    if (is_small()) checking->session() << "CREATE TABLE bench_row AS SELECT * FROM txinbox_consumed_message";
    consumer = std::make_unique<TxConsumer>(*pool, "sizes");
  }

  bool is_small() const { return rows < smallest_large_table; }

  /// Consumes new keys. This function and the two next ones return the microseconds for one key.
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
    if (is_small()) {
      // The keys are deleted again, because the table must stay small.
      for (const Message& each : messages) {
        checking->session() << "DELETE FROM txinbox_consumed_message WHERE consumer = 'sizes' AND business_key = :key",
            soci::use(each.business_key);
      }
    }
    return time;
  }

  /// Consumes existing keys, which are distributed over the newer half of the rows. `purge_some` uses the older half.
  double redeliver(int count) {
    std::uniform_int_distribution<std::uint64_t> any(static_cast<std::uint64_t>(rows) / 2,
                                                     static_cast<std::uint64_t>(rows) - 1);
    const std::uint64_t step = spread_range / static_cast<std::uint64_t>(rows);
    std::vector<Message> messages(static_cast<std::size_t>(count));
    std::ranges::generate(messages, [&] { return Message{.business_key = spread_key(any(random) * step)}; });
    const auto start = Clock::now();
    for (const Message& each : messages) {
      if (consumer->consume(each, handler).outcome != Outcome::already_consumed) {
        throw std::runtime_error("a duplicate was consumed as a new key");
      }
    }
    return microseconds_since(start) / count;
  }

  /// Purges the oldest rows.
  double purge_some(int count) {
    if (purged + count > rows / 2) {
      purge(*checking, old, {.duty = 1});
      checking->session() << "INSERT INTO txinbox_consumed_message SELECT * FROM bench_row";
      purged = 0;
    }
    const auto start = Clock::now();
    const auto removed = purge(*checking, old, {.max_rows = static_cast<std::size_t>(count), .duty = 1});
    const double time = microseconds_since(start) / count;
    if (removed != static_cast<std::size_t>(count)) throw std::runtime_error("the purge removed too few rows");
    purged += count;
    return time;
  }

  static constexpr std::chrono::hours old{24};

  long long rows;
  long long purged = 0;
  std::mt19937_64 random{20'260'102};
  SpreadKeys keys;
  Database database;
  double fill_seconds = 0;
  double disk_bytes = 0;
  std::unique_ptr<Pool> pool;
  std::unique_ptr<Connection> checking;
  std::unique_ptr<Effects> effects;
  std::unique_ptr<TxConsumer> consumer;
  Handler handler = business_handler();
};

}  // namespace

Json measure_sizes(const Target& target, const SizeOptions& options) {
  std::vector<std::unique_ptr<Sized>> tables;
  // The largest table is filled first, because filling it displaces the pages of other tables from the memory.
  std::vector<long long> sizes = options.rows;
  std::ranges::sort(sizes, std::greater());
  Progress filling("tables filled", static_cast<int>(sizes.size()));
  for (const long long rows : sizes) {
    tables.push_back(std::make_unique<Sized>(target, rows));
    filling.step();
  }
  Json times = Json::object();
  Json duplicate_times = Json::object();
  Json purge_times = Json::object();
  Json fill_seconds = Json::object();
  Json disk_bytes = Json::object();
  for (auto& each : tables) {
    fill_seconds[std::to_string(each->rows)] = each->fill_seconds;
    disk_bytes[std::to_string(each->rows)] = each->disk_bytes;
    each->consume(options.messages);
    each->redeliver(options.messages);
  }
  Progress progress("rounds", options.rounds);
  const auto begin = Clock::now();
  for (int round = 0; round < options.rounds; ++round) {
    if (round >= 3 && Clock::now() - begin > options.at_most) break;
    rotated(tables.size(), round, [&](std::size_t i) {
      const std::string rows = std::to_string(tables[i]->rows);
      times[rows].push_back(tables[i]->consume(options.messages));
      duplicate_times[rows].push_back(tables[i]->redeliver(options.messages));
      purge_times[rows].push_back(tables[i]->purge_some(options.messages));
    });
    progress.step();
  }
  return {{"messages_per_round", options.messages},
          {"fill_seconds", fill_seconds},
          {"disk_bytes", disk_bytes},
          {"cache_bytes", cache_bytes(tables.front()->checking->session(), target.name)},
          {"peak_resident_kib", peak_resident_kib()},
          {"microseconds", times},
          {"duplicate_microseconds", duplicate_times},
          {"purge_microseconds", purge_times}};
}

}  // namespace txinbox::bench
