#include "fill.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <soci/soci.h>

#include "spread_keys.hpp"

namespace txinbox::bench {
namespace {

// The rows are inserted in the order of the keys and of the times. This is the fastest way to fill both indexes.

void fill_sqlite3(soci::session& sql, const std::string& consumer, long long rows, std::uint64_t step) {
  sql << "PRAGMA synchronous = OFF";
  sql << "PRAGMA journal_mode = OFF";
  sql << "PRAGMA cache_size = -400000";
  // The times are one millisecond apart, so that their index is filled in order.
  sql << "BEGIN IMMEDIATE";
  sql << fmt::format(
      "WITH RECURSIVE g(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM g WHERE i < {} - 1) "
      "INSERT INTO txinbox_consumed_message (consumer, business_key, state, attempt_token, consumed_at) "
      "SELECT '{}', printf('%015x', i * {}), 'consumed', zeroblob(16), "
      "strftime('%Y-%m-%d %H:%M:%f', 2461000 + i / 86400000.0) FROM g",
      rows, consumer, step);
  sql << "COMMIT";
  sql << "PRAGMA journal_mode = WAL";
}

void fill_mariadb(soci::session& sql, const std::string& consumer, long long rows, std::uint64_t step) {
  sql << "SET SESSION sql_log_bin = 0, unique_checks = 0, max_statement_time = 0";
  constexpr long long part = 500'000;
  for (long long first = 0; first < rows; first += part) {
    sql << fmt::format(
        "INSERT INTO txinbox_consumed_message (consumer, business_key, state, attempt_token, consumed_at) "
        "SELECT '{}', LPAD(LOWER(HEX(seq * {})), 15, '0'), 'consumed', x'00000000000000000000000000000000', "
        "TIMESTAMP'2026-01-01 00:00:00' + INTERVAL seq * 1000 MICROSECOND FROM seq_{}_to_{}",
        consumer, step, first, std::min(first + part, rows) - 1);
  }
  sql << "FLUSH TABLES txinbox_consumed_message FOR EXPORT";
  sql << "UNLOCK TABLES";
}

void fill_postgresql(soci::session& sql, const std::string& consumer, long long rows, std::uint64_t step) {
  sql << "SET statement_timeout = 0";
  sql << "SET maintenance_work_mem = '512MB'";
  sql << "SET max_parallel_maintenance_workers = 0";  // the server has one CPU
  // Indexes are built faster after the insert. The names and columns are those of the migration.
  sql << "BEGIN";
  sql << "ALTER TABLE txinbox_consumed_message DROP CONSTRAINT txinbox_consumed_message_pkey";
  sql << "DROP INDEX txinbox_consumed_message_consumed_at";
  sql << fmt::format(
      "INSERT INTO txinbox_consumed_message (consumer, business_key, state, attempt_token, consumed_at) "
      "SELECT '{}', lpad(to_hex(i * {}), 15, '0'), 'consumed', CAST('00000000000000000000000000000000' AS uuid), "
      "timestamptz '2026-01-01' + i * interval '1 millisecond' FROM generate_series(CAST(0 AS bigint), {}) AS i",
      consumer, step, rows - 1);
  sql << "ALTER TABLE txinbox_consumed_message ADD CONSTRAINT txinbox_consumed_message_pkey "
         "PRIMARY KEY (consumer, business_key)";
  sql << "CREATE INDEX txinbox_consumed_message_consumed_at ON txinbox_consumed_message (consumed_at)";
  sql << "COMMIT";
  sql << "VACUUM (ANALYZE, FREEZE) txinbox_consumed_message";
  sql << "CHECKPOINT";
}

}  // namespace

void fill(soci::session& sql, const std::string& consumer, long long rows) {
  const std::uint64_t step = spread_range / static_cast<std::uint64_t>(rows);
  const std::string name = sql.get_backend_name();
  if (name == "sqlite3") {
    fill_sqlite3(sql, consumer, rows, step);
  } else if (name == "mysql") {
    fill_mariadb(sql, consumer, rows, step);
  } else {
    fill_postgresql(sql, consumer, rows, step);
  }
}

}  // namespace txinbox::bench
