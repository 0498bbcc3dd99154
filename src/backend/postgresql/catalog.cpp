#include "backend/postgresql/parts.hpp"

#include <fmt/format.h>

#include <utility>

#include "backend/peer.hpp"
#include "backend/postgresql/native.hpp"
#include "backend/query.hpp"
#include "backend/script.hpp"
#include "backend/table_check.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

/// The key of the advisory lock: "txinbox" in ASCII. Each database has its own locks.
constexpr long long lock_number = 0x747869'6e626f78;

class PostgresqlCatalog final : public Catalog {
 public:
  explicit PostgresqlCatalog(ConnectionPtr connection) : shared_(std::move(connection)), sql_(*shared_) {}

  std::string find_schema(std::string_view table) override {
    return query_text(sql_, fmt::format("SELECT n.nspname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON "
                                        "n.oid = c.relnamespace WHERE c.oid = pg_catalog.to_regclass('{}')",
                                        table));
  }

  bool may_read(std::string_view table) override {
    return query_text(sql_, fmt::format("SELECT pg_catalog.has_table_privilege(pg_catalog.to_regclass('{}'), 'SELECT')",
                                        table)) == "t";
  }

  std::vector<Problem> check_tables(const std::string& schema) override {
    return check_postgresql_tables(sql_, schema);
  }
  std::vector<Finding> check_server() override { return check_postgresql_server(sql_); }
  std::vector<Finding> check_outbox_numbers(const std::string& schema) override {
    return check_postgresql_outbox_numbers(sql_, schema);
  }

  /// A slot of the plug-in pgoutput gets only what a publication contains. Other plug-ins get all tables.
  std::optional<LogReader> find_log_reader(const std::string& schema) override {
    const auto rows = query(
        sql_,
        fmt::format("SELECT slot_name, active FROM pg_catalog.pg_replication_slots WHERE slot_type = 'logical' AND "
                    "database = pg_catalog.current_database() AND (plugin <> 'pgoutput' OR EXISTS (SELECT 1 FROM "
                    "pg_catalog.pg_publication_tables WHERE schemaname = {} AND tablename = '{}')) "
                    "ORDER BY active DESC, slot_name LIMIT 1",
                    quote_literal(postgresql_native(sql_), schema), outbox_message_table),
        2);
    if (rows.empty()) return std::nullopt;
    return LogReader{"the replication slot " + rows[0][0].value_or(""), rows[0][1] == "t"};
  }

  std::string server_version() override { return query_text(sql_, "SHOW server_version"); }

  std::vector<Row> read(const std::string& text, std::size_t columns) override { return query(sql_, text, columns); }

  Transport transport() override {
    PGconn* pg = postgresql_native(sql_);
    std::string encryption;
    if (PQsslInUse(pg) != 0) {
      const auto attribute = [pg](const char* name) {
        const char* value = PQsslAttribute(pg, name);
        return std::string(value == nullptr ? "" : value);
      };
      encryption = fmt::format("{}, {}", attribute("protocol"), attribute("cipher"));
    } else if (PQgssEncInUse(pg) != 0) {
      encryption = "GSSAPI";
    }
    return {reaches_beyond_host(PQsocket(pg)), std::move(encryption)};
  }

  std::int64_t table_bytes(const std::string& schema) override {
    PGconn* pg = postgresql_native(sql_);
    return number_in(query_text(sql_, fmt::format("SELECT pg_catalog.pg_total_relation_size({})",
                                                  quote_literal(pg, quote_identifier(pg, schema) + "." +
                                                                        std::string(consumed_message_table)))));
  }

  /// A table that was never analyzed has the number -1, or 0 before PostgreSQL 14.
  TableEstimate estimate(const std::string& schema) override {
    const auto rows =
        query(sql_,
              fmt::format("SELECT CAST(c.reltuples AS bigint), c.relpages FROM pg_catalog.pg_class c JOIN "
                          "pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = {} AND c.relname = "
                          "'{}'",
                          quote_literal(postgresql_native(sql_), schema), consumed_message_table),
              2);
    TableEstimate found{.bytes = table_bytes(schema)};
    if (rows.empty() || !rows[0][0] || rows[0][0]->starts_with('-') || rows[0][1] == "0") return found;
    found.rows = number_in(*rows[0][0]);
    return found;
  }

  bool has_lease_index(const std::string& schema) override {
    return !query(sql_,
                  fmt::format("SELECT indexname FROM pg_catalog.pg_indexes WHERE schemaname = {} AND tablename = '{}' "
                              "AND indexname = '{}'",
                              quote_literal(postgresql_native(sql_), schema), consumed_message_table, lease_index),
                  1)
                .empty();
  }

  void begin_migrations() override {
    // Use READ COMMITTED, so that we see what other calls have migrated while this call waited.
    PGconn* pg = postgresql_native(sql_);
    const auto begun = try_exec(pg, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE");
    refuse_standby(pg, begun.get());
    if (!succeeded(begun.get())) throw_postgresql_error(pg, begun.get());
    run_unbounded("SET LOCAL lock_timeout = '60s'");
    run_unbounded("SET LOCAL statement_timeout = 0");
    run_unbounded("SET LOCAL client_min_messages = warning");
    run_unbounded(fmt::format("SELECT pg_catalog.pg_advisory_xact_lock({})", lock_number));
    // If the tables exist, migrate them in the schema in which they are.
    const auto schema = find_schema(consumed_message_table);
    if (!schema.empty()) {
      run_unbounded(fmt::format("SELECT pg_catalog.set_config('search_path', {}, true)",
                                quote_literal(pg, quote_identifier(pg, schema))));
    }
  }

  void apply(std::string_view sql) override { run_unbounded(std::string(sql)); }

  void end_migrations() override { run_unbounded("COMMIT"); }

  void abandon_migrations() noexcept override { try_roll_back(sql_); }

 private:
  /// Runs a statement without a limit for its time or for its wait. A statement on a big table can take long, and so
  /// can the wait for another migration.
  void run_unbounded(const std::string& sql) {
    PGconn* pg = postgresql_native(sql_);
    const PostgresqlResult result(PQexec(pg, sql.c_str()));
    if (!succeeded(result.get())) throw_postgresql_error(pg, result.get());
  }

  const ConnectionPtr shared_;
  const NativeConnection& sql_;
};

}  // namespace

std::unique_ptr<Catalog> make_postgresql_catalog(ConnectionPtr connection) {
  return std::make_unique<PostgresqlCatalog>(std::move(connection));
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
