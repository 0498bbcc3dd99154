#include <fmt/format.h>

#include "backend/database_error.hpp"
#include "backend/postgresql/flavour.hpp"
#include "backend/postgresql/native.hpp"
#include "backend/postgresql/parts.hpp"
#include "backend/query.hpp"
#include "backend/report.hpp"
#include "backend/table_check.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

constexpr int oldest_supported = 120000;
constexpr long long long_wait_milliseconds = 900'000;

void check_durability(const Settings& settings, Report& report) {
  const auto commit = value_of(settings, "synchronous_commit");
  const bool has_standbys = !value_of(settings, "synchronous_standby_names").empty();
  if (commit == "off") {
    report.warn("synchronous_commit", "off: a crash of the server can undo messages that were acknowledged",
                "SET synchronous_commit = on for the service's user (ALTER ROLE … SET synchronous_commit = on)");
  } else if (commit == "local" && has_standbys) {
    report.warn("synchronous_commit", "local: a failover can undo messages that were acknowledged",
                "SET synchronous_commit = on for the service's user (ALTER ROLE … SET synchronous_commit = on)");
  } else if (has_standbys) {
    report.note("synchronous_standby_names",
                "a commit whose wait for the standby is cancelled stays visible and can be lost in a failover",
                "do not cancel such waits, and have the broker deliver again from before a failover");
  }
  for (const char* name : {"fsync", "full_page_writes"}) {
    if (value_of(settings, name) != "off") continue;
    report.warn(name, "off: a crash of the machine can destroy the database",
                fmt::format("{} = on in postgresql.conf", name));
  }
}

void check_waits(const Settings& settings, Report& report) {
  const auto idle = number_in(value_of(settings, "idle_in_transaction_session_timeout"));
  if (idle == 0 || idle > long_wait_milliseconds) {
    report.warn("idle_in_transaction_session_timeout",
                idle == 0 ? "0: a consumer that vanished holds its keys until the network gives up, or for ever"
                          : fmt::format("{} s: so long can a consumer that vanished hold its keys", idle / 1000),
                "SET idle_in_transaction_session_timeout = '300s'; open_pool does so");
  }
  const auto lock = number_in(value_of(settings, "lock_timeout"));
  if (lock == 0 || lock > long_wait_milliseconds) {
    report.warn("lock_timeout",
                lock == 0 ? "0: a second delivery of a key waits for the first without end"
                          : fmt::format("{} s: so long can a second delivery of a key wait for the first", lock / 1000),
                "SET lock_timeout = '10s'; open_pool does so");
  }
  if (const auto isolation = value_of(settings, "default_transaction_isolation"); isolation != "read committed") {
    report.note("default_transaction_isolation",
                fmt::format("{}: many serialization failures, and so retries", isolation),
                "SET default_transaction_isolation = 'read committed'; open_pool does so");
  }
}

void check_prepared_transactions(const NativeConnection& sql, Report& report) {
  const auto prepared =
      number_in(query_text(sql,
                           "SELECT count(*) FROM pg_catalog.pg_prepared_xacts WHERE database = current_database() AND "
                           "prepared < now() - interval '15 minutes'"));
  if (prepared == 0) return;
  report.warn("prepared transactions", fmt::format("{} older than 15 minutes: they can hold keys for ever", prepared),
              "COMMIT PREPARED or ROLLBACK PREPARED what pg_prepared_xacts lists");
}

void check_triggers(const NativeConnection& sql, Report& report) {
  // Rewrite rules act like triggers. PostgreSQL refuses ON CONFLICT on a table with rules.
  const auto triggers = query_text(
      sql,
      fmt::format("SELECT string_agg(name, ', ') FROM (SELECT CAST(tgname AS text) AS name FROM pg_catalog.pg_trigger "
                  "WHERE tgrelid = "
                  "pg_catalog.to_regclass('{0}') AND NOT tgisinternal AND tgname <> '{1}' UNION ALL SELECT "
                  "CAST(rulename AS text) FROM "
                  "pg_catalog.pg_rewrite WHERE ev_class = pg_catalog.to_regclass('{0}')) AS found",
                  consumed_message_table, guard_trigger));
  if (triggers.empty()) return;
  report.warn(std::string(consumed_message_table),
              "it has triggers or rules: " + triggers + "; they run with every claim",
              "make sure that they neither fail nor change the row, or remove them");
}

void check_recovery(const NativeConnection& sql, const Settings& settings, Report& report) {
  if (query_text(sql, "SELECT pg_catalog.pg_is_in_recovery()") == "t") {
    report.warn("recovery", "this server is a standby: nothing can be consumed here", "connect to the primary");
  } else if (value_of(settings, "default_transaction_read_only") == "on") {
    report.warn("default_transaction_read_only", "on: nothing can be consumed on this connection",
                "SET default_transaction_read_only = off; open_pool does so");
  }
}

/// Checks the version. Returns whether we know the server.
bool check_version(const NativeConnection& sql, Report& report) {
  if (const auto product = unknown_postgresql(query_text(sql, "SELECT version()")); !product.empty()) {
    report.warn("unknown server", product + ": txinbox is not tested on it",
                "run txinbox-torture on it before you rely on it; supported are PostgreSQL 12 and newer versions");
    return false;
  }
  if (PQserverVersion(postgresql_native(sql)) < oldest_supported) {
    report.warn("version", "the server is older than PostgreSQL 12", "upgrade the server");
  }
  return true;
}

void check_citus(const NativeConnection& sql, Report& report) {
  const auto version = query_text(sql, "SELECT extversion FROM pg_catalog.pg_extension WHERE extname = 'citus'");
  if (version.empty()) return;
  report.note("citus",
              version + ": it refuses purges of a distributed table, and the record of a message that failed (0A000)",
              "keep the tables of the inbox as they were made, and do not distribute them");
}

}  // namespace

std::vector<Finding> check_postgresql_server(const NativeConnection& sql) {
  const auto settings =
      query_settings(sql,
                     "SELECT name, setting FROM pg_catalog.pg_settings WHERE name IN ('synchronous_commit', "
                     "'synchronous_standby_names', 'fsync', 'full_page_writes', 'idle_in_transaction_session_timeout', "
                     "'lock_timeout', 'default_transaction_isolation', 'default_transaction_read_only')");
  Report report;
  const bool is_known = check_version(sql, report);
  check_durability(settings, report);
  check_waits(settings, report);
  // On a server that we do not know, something that a check reads may be missing.
  const auto run = [&](const auto& check) {
    try {
      check();
    } catch (const DatabaseError& error) {
      if (is_known) throw;
      report.note("unknown server", fmt::format("it refuses a query of doctor (SQLSTATE {})", error.code()),
                  "look for prepared transactions, and for triggers on the tables of the inbox");
    }
  };
  run([&] { check_recovery(sql, settings, report); });
  run([&] { check_prepared_transactions(sql, report); });
  run([&] { check_triggers(sql, report); });
  run([&] { check_citus(sql, report); });
  return report.take();
}

std::vector<Finding> check_postgresql_outbox_numbers(const NativeConnection& sql, const std::string& schema) {
  PGconn* pg = postgresql_native(sql);
  const std::string table = quote_identifier(pg, schema) + "." + quote_identifier(pg, outbox_message_table);
  Report report;
  const auto sequences =
      query(sql,
            fmt::format("SELECT CAST(s.seqrelid AS pg_catalog.regclass), s.seqincrement, s.seqcache, s.seqcycle, "
                        "pg_catalog.has_sequence_privilege(s.seqrelid, 'SELECT') FROM pg_catalog.pg_sequence s WHERE "
                        "s.seqrelid = pg_catalog.to_regclass(pg_catalog.pg_get_serial_sequence({}, 'seq'))",
                        quote_literal(pg, table)),
            5);
  for (const Row& row : sequences) {
    const std::string name = row[0].value_or("");
    if (row[1] != "1" || row[2] != "1" || row[3] == "t") {
      report.warn("outbox",
                  fmt::format("the sequence {} has another INCREMENT or CACHE than 1, or a CYCLE: messages of one key "
                              "can be published in another order than they were added",
                              name),
                  fmt::format("ALTER SEQUENCE {} INCREMENT BY 1 CACHE 1 NO CYCLE", name));
    }
    if (row[4] != "t") continue;  // this user cannot read the sequence
    const auto behind = query_text(
        sql, fmt::format("SELECT max(m.seq) >= (SELECT last_value + CASE WHEN is_called THEN 1 ELSE 0 END FROM {}) "
                         "FROM {} m",
                         name, table));
    if (behind != "t") continue;
    report.warn(
        "outbox",
        fmt::format("the sequence {} is behind the rows of {}: Outbox::add fails with schema_mismatch", name, table),
        fmt::format("SELECT setval('{}', (SELECT max(seq) FROM {}))", name, table));
  }
  return report.take();
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
