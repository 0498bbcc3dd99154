#include "backend/postgresql/parts.hpp"

#include <utility>

#include <fmt/format.h>

#include "base/hex.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

std::string quoted_identifier(std::string_view name) {
  std::string quoted(1, '"');
  for (const char c : name) {
    if (c == '"') quoted += c;
    quoted += c;
  }
  return quoted += '"';
}

std::string interval(std::chrono::milliseconds time) { return fmt::format("interval '{} milliseconds'", time.count()); }

class PostgresqlDialect final : public Dialect {
 public:
  explicit PostgresqlDialect(std::string schema) : schema_(std::move(schema)) {}

  std::string table(std::string_view name) const override {
    return fmt::format("{}.{}", quoted_identifier(schema_), quoted_identifier(name));
  }

  // The literal means the same bytes under every client_encoding and standard_conforming_strings of the session.
  std::string text(std::string_view value) const override {
    return fmt::format("pg_catalog.convert_from(pg_catalog.decode('{}', 'hex'), 'UTF8')", detail::to_hex(value));
  }
  std::string bytes(std::string_view value) const override {
    return fmt::format("pg_catalog.decode('{}', 'hex')", detail::to_hex(value));
  }
  std::string token(const detail::Token& value) const override {
    return fmt::format("CAST('{}' AS uuid)", value.hex());
  }

  // For a plain join, the server can choose to read both tables as a whole. With OFFSET, it cannot.
  std::string left_join_row(std::string_view table, std::string_view alias, std::string_view condition) const override {
    return fmt::format("LEFT JOIN LATERAL (SELECT * FROM {0} {1} WHERE {2} OFFSET 0) {1} ON true", table, alias,
                       condition);
  }

  // Texts are sent as bytes, because an earlier handler may have changed client_encoding.
  std::string parameter(ParameterType type, int position) const override {
    if (type == ParameterType::bytes) return fmt::format("${}", position);
    std::string text = fmt::format("pg_catalog.convert_from(${}, 'UTF8')", position);
    if (type == ParameterType::text) return text;
    if (type == ParameterType::token) return fmt::format("CAST(pg_catalog.encode(${}, 'hex') AS uuid)", position);
    return fmt::format("CAST({} AS {})", text, type == ParameterType::uuid ? "uuid" : "bigint");
  }

  std::string now() const override { return "pg_catalog.clock_timestamp()"; }
  using Dialect::now_plus;
  std::string now_plus(std::string_view milliseconds) const override {
    return fmt::format("pg_catalog.clock_timestamp() + {} * interval '1 millisecond'", milliseconds);
  }
  std::string now_in_microseconds() const override {
    return "CAST(extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000 AS bigint)";
  }
  std::string before(std::chrono::milliseconds age) const override {
    return fmt::format("statement_timestamp() - {}", interval(age));
  }

  std::string milliseconds_since(std::string_view column) const override {
    return fmt::format("CAST(pg_catalog.floor(extract(epoch FROM pg_catalog.clock_timestamp() - {}) * 1000) AS bigint)",
                       column);
  }

  std::string utc_text(std::string_view column) const override {
    return fmt::format("pg_catalog.to_char({} AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')", column);
  }

  std::string time(std::string_view exact) const override { return fmt::format("timestamptz '{}+00'", exact); }

  std::string hex_text(std::string_view column) const override {
    return fmt::format("pg_catalog.encode({}, 'hex')", column);
  }

  std::string hex_token(std::string_view column) const override {
    return fmt::format("pg_catalog.replace(CAST({} AS text), '-', '')", column);
  }

  // The statistics may say that a table has no rows. Then the planner expects one row, and all indexes seem equally
  // good. The next functions leave it one way only.

  // Only the index on both columns can find rows by these pairs. With a condition for each column, the planner may use
  // the index on the number alone, and pass the rows of all keys.
  std::string in_range(std::string_view key, std::string_view value, std::string_view number, std::string_view after,
                       std::string_view up_to) const override {
    return fmt::format("({0}, {2}) > ({1}, {3}) AND ({0}, {2}) <= ({1}, {4})", key, value, number, after, up_to);
  }

  // It needs no index. The address of a row stays the same during a statement.
  std::string row_address(std::string_view /*key*/) const override { return "ctid"; }

  // An INSERT locks the table before it takes a number, until its transaction has ended and its rows are visible. A
  // lock without a process belongs to a prepared transaction. On older servers, the preparation changes the name.
  std::string open_writers(std::string_view table) const override {
    return fmt::format(
        "SELECT DISTINCT {}, l.virtualtransaction, CASE WHEN l.pid IS NULL THEN 1 ELSE 0 END FROM (SELECT 1) s LEFT "
        "JOIN pg_catalog.pg_locks l ON "
        "l.locktype = 'relation' AND l.mode = 'RowExclusiveLock' AND l.relation = {}::regclass AND "
        "l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database())",
        server_number(table), text(table));
  }

  // RESTART IDENTITY and a new table have new files. setval() is not seen.
  std::string server_number(std::string_view table) const override {
    return fmt::format(
        "pg_catalog.hashtextextended(pg_catalog.concat_ws(' ', extract(epoch FROM "
        "pg_catalog.pg_postmaster_start_time()), "
        "pg_catalog.pg_relation_filenode({0}::regclass), "
        "pg_catalog.pg_relation_filenode(CAST(pg_catalog.pg_get_serial_sequence({0}, 'seq') AS regclass))), 0)",
        text(table));
  }

  // An identity column that is GENERATED ALWAYS takes no value but its next number.
  std::string new_number(std::string_view /*column*/) const override { return "DEFAULT"; }

  std::string greater(std::string_view a, std::string_view b) const override {
    return fmt::format("greatest({}, {})", a, b);
  }

 private:
  const std::string schema_;
};

}  // namespace

std::unique_ptr<Dialect> make_postgresql_dialect(std::string schema) {
  return std::make_unique<PostgresqlDialect>(std::move(schema));
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
