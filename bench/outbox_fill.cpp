#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include <fmt/format.h>
#include <soci/soci.h>

#include "outbox.hpp"

namespace txinbox::bench {
namespace {

constexpr unsigned long long spread = 2'654'435'761;  // odd, so that no two numbers below 2^32 give the same value
constexpr unsigned long long id_mask = 0xffff'ffff;

constexpr auto columns = "id, aggregatetype, aggregateid, type, payload, part, created_at";

// The relay of the benchmark has all parts, so it does not matter in which part a row is.

void fill_sqlite3(soci::session& sql, long long rows, int keys) {
  sql << "PRAGMA cache_size = -400000";
  sql << "PRAGMA temp_store = MEMORY";
  sql << "BEGIN IMMEDIATE";
  sql << fmt::format(
      "WITH RECURSIVE g(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM g WHERE i < {} - 1) "
      "INSERT INTO txinbox_outbox_message ({}) "
      "SELECT printf('%08x-0000-4000-8000-%012x', (i * {}) & {}, i), 'orders', printf('order-%08d', i % {}), "
      "'OrderBooked', CAST('{}' AS BLOB), i % 64, strftime('%Y-%m-%d %H:%M:%f', 'now') FROM g",
      rows, columns, spread, id_mask, keys, outbox_payload());
  sql << "COMMIT";
  sql << "PRAGMA cache_size = -2000";
  sql << "PRAGMA wal_checkpoint(TRUNCATE)";
}

void fill_mariadb(soci::session& sql, long long rows, int keys) {
  sql << "SET SESSION sql_log_bin = 0, unique_checks = 0, max_statement_time = 0";
  constexpr long long part = 250'000;
  for (long long first = 0; first < rows; first += part) {
    sql << fmt::format(
        "INSERT INTO txinbox_outbox_message ({}) "
        "SELECT CONCAT(LPAD(LOWER(HEX((seq * {}) & {})), 8, '0'), '-0000-4000-8000-', LPAD(LOWER(HEX(seq)), 12, '0')), "
        "'orders', CONCAT('order-', LPAD(seq % {}, 8, '0')), 'OrderBooked', '{}', seq % 64, UTC_TIMESTAMP(6) "
        "FROM seq_{}_to_{}",
        columns, spread, id_mask, keys, outbox_payload(), first, std::min(first + part, rows) - 1);
  }
  sql << "FLUSH TABLES txinbox_outbox_message FOR EXPORT";
  sql << "UNLOCK TABLES";
}

void fill_postgresql(soci::session& sql, long long rows, int keys) {
  sql << "SET statement_timeout = 0";
  sql << fmt::format(
      "INSERT INTO txinbox_outbox_message ({}) "
      "SELECT CAST(lpad(to_hex((i * {}) & {}), 8, '0') || '-0000-4000-8000-' || lpad(to_hex(i), 12, '0') AS uuid), "
      "'orders', 'order-' || lpad(CAST(i % {} AS text), 8, '0'), 'OrderBooked', '{}', i % 64, clock_timestamp() "
      "FROM generate_series(CAST(0 AS bigint), {}) AS i",
      columns, spread, id_mask, keys, outbox_payload(), rows - 1);
  sql << "VACUUM (ANALYZE, FREEZE) txinbox_outbox_message";
  sql << "CHECKPOINT";
}

}  // namespace

std::string outbox_payload() {
  std::string payload = R"({"order": "4711", "text": ")";
  payload.resize(198, 'x');
  return payload + "\"}";
}

std::string outbox_id(unsigned long long n) {
  return fmt::format("{:08x}-0000-4000-8000-{:012x}", n * spread & id_mask, n);
}

unsigned long long outbox_number(const std::string& id) {
  const unsigned long long n = std::strtoull(id.substr(id.rfind('-') + 1).c_str(), nullptr, 16);
  if (id != outbox_id(n)) throw std::runtime_error("a message has an unknown id: " + id);
  return n;
}

void fill_outbox(soci::session& sql, long long rows, int keys) {
  const std::string name = sql.get_backend_name();
  if (name == "sqlite3") {
    fill_sqlite3(sql, rows, keys);
  } else if (name == "mysql") {
    fill_mariadb(sql, rows, keys);
  } else {
    fill_postgresql(sql, rows, keys);
  }
}

}  // namespace txinbox::bench
