#include <fmt/format.h>

#include <algorithm>

#include "backend/mysql/flavour.hpp"
#include "backend/mysql/native.hpp"
#include "backend/mysql/parts.hpp"
#include "backend/query.hpp"
#include "backend/report.hpp"
#include "backend/table_check.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

constexpr long long long_wait_seconds = 900;

constexpr auto wanted_variables =
    " WHERE Variable_name IN ('version', 'version_comment', 'aurora_version', 'read_only', 'log_bin', 'sync_binlog', "
    "'binlog_format', "
    "'innodb_flush_log_at_trx_commit', 'innodb_doublewrite', 'wait_timeout', 'idle_transaction_timeout', "
    "'idle_write_transaction_timeout', 'innodb_lock_wait_timeout', 'lock_wait_timeout', 'sql_mode', 'tx_isolation', "
    "'transaction_isolation', 'rpl_semi_sync_master_enabled', 'rpl_semi_sync_source_enabled', 'wsrep_on', "
    "'wsrep_provider', 'wsrep_provider_options', 'wsrep_OSU_method', 'auto_increment_increment')";

bool is_on(std::string_view value) { return value == "ON" || value == "1"; }

/// Returns how many nodes the cluster has now, including this one. Returns 0 if there is no cluster.
long long cluster_size(const Settings& global, const Settings& status) {
  const auto provider = value_of(global, "wsrep_provider");
  return provider.empty() || provider == "none" ? 0 : number_in(value_of(status, "wsrep_cluster_size"));
}

/// Returns whether we know the server.
bool check_version(std::string_view handshake, const Settings& global, Report& report) {
  const auto version = value_of(global, "version");
  if (const std::string product = unknown_product(handshake, global); !product.empty()) {
    report.warn(
        "unknown server", product + ": txinbox is not tested on it",
        "run txinbox-torture on it before you rely on it; supported are MariaDB 10.5, MySQL 8.0.19 and newer versions");
    return false;
  }
  const ServerVersion server = parse_server_version(version);
  if (!server.is_supported()) {
    const bool is_mariadb = server.product == ServerVersion::Product::mariadb;
    report.warn("version", fmt::format("{} is older than {}", version, is_mariadb ? "MariaDB 10.5" : "MySQL 8.0.19"),
                "upgrade the server");
  }
  return server.is_supported();
}

/// Checks whether a commit is on the disk. In a cluster, the other nodes keep the commits that one node loses in a
/// crash.
void check_flushing(const Settings& global, bool replicated, Report& report) {
  const auto flush = value_of(global, "innodb_flush_log_at_trx_commit");
  if (flush == "1") return;
  const auto remedy = "SET GLOBAL innodb_flush_log_at_trx_commit = 1, and the same in the server's option file";
  if (replicated) {
    report.note("innodb_flush_log_at_trx_commit",
                fmt::format("{}: a crash of all nodes at once, as in a power failure, can undo messages that were "
                            "acknowledged",
                            flush),
                remedy);
  } else {
    report.warn("innodb_flush_log_at_trx_commit",
                fmt::format("{}: a crash can undo messages that were acknowledged", flush), remedy);
  }
}

void check_durability(const Settings& global, const Settings& session, bool replicated, Report& report) {
  check_flushing(global, replicated, report);
  if (value_of(global, "innodb_doublewrite") == "OFF") {
    report.warn("innodb_doublewrite", "OFF: a power failure can destroy pages",
                "innodb_doublewrite = ON in the server's option file, unless the storage writes whole pages");
  }
  if (!is_on(value_of(global, "log_bin"))) return;
  if (const auto sync = value_of(global, "sync_binlog"); sync != "1" && !replicated) {
    report.warn("sync_binlog",
                fmt::format("{}: after a crash, transactions that the binary log lost are rolled back", sync),
                "SET GLOBAL sync_binlog = 1, and the same in the server's option file");
  }
  if (value_of(session, "binlog_format") == "STATEMENT") {
    report.fail("binlog_format", "STATEMENT: writes under READ COMMITTED are refused with error 1665",
                "SET GLOBAL binlog_format = 'ROW' (or 'MIXED'), and the same in the server's option file");
  }
}

void check_waits(const Settings& session, Report& report) {
  // The shorter of these time-outs ends the connection of a client whose host has vanished.
  std::string which = "wait_timeout";
  auto seconds = number_in(value_of(session, which));
  for (const char* name : {"idle_transaction_timeout", "idle_write_transaction_timeout"}) {
    const auto limit = number_in(value_of(session, name));
    if (limit > 0 && limit < seconds) {
      seconds = limit;
      which = name;
    }
  }
  if (seconds > long_wait_seconds) {
    const bool has_idle_timeout = session.contains("idle_transaction_timeout");
    report.warn(which, fmt::format("{} s: so long can a consumer that vanished hold its keys", seconds),
                has_idle_timeout ? "SET SESSION idle_transaction_timeout = 300; open_pool does so"
                                 : "SET SESSION wait_timeout = 300; open_pool does so");
  }
  for (const char* name : {"innodb_lock_wait_timeout", "lock_wait_timeout"}) {
    if (const auto limit = number_in(value_of(session, name)); limit > long_wait_seconds) {
      report.note(name, fmt::format("{} s: so long can a statement wait for a lock", limit),
                  fmt::format("SET SESSION {} = 10; open_pool does so", name));
    }
  }
}

void check_modes(const Settings& global, const Settings& session, Report& report) {
  const auto isolation = std::max(value_of(session, "tx_isolation"), value_of(session, "transaction_isolation"));
  if (isolation != "READ-COMMITTED") {
    report.note("transaction_isolation", fmt::format("{}: more deadlocks than under READ COMMITTED", isolation),
                "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; open_pool does so");
  }
  if (!is_strict(value_of(global, "sql_mode"))) {
    report.note("sql_mode", "the server's default is not strict: sessions that open_pool did not make are refused",
                "add STRICT_TRANS_TABLES to sql_mode in the server's option file");
  }
  if (const auto read_only = value_of(global, "read_only"); read_only != "OFF" && read_only != "0") {
    report.warn("read_only", "this server is read-only, as a replica is: nothing can be consumed here",
                "connect to the primary");
  }
}

bool has_replicas(const Settings& status) { return number_in(value_of(status, "Slaves_connected")) > 0; }

void check_replication(const Settings& global, const Settings& status, Report& report) {
  const bool semi_sync = value_of(global, "rpl_semi_sync_master_enabled") == "ON" ||
                         value_of(global, "rpl_semi_sync_source_enabled") == "ON";
  if (has_replicas(status) && !semi_sync) {
    report.note("replication",
                "asynchronous: a failover can lose the last messages that were acknowledged, with their effect",
                "enable semi-synchronous replication, or have the broker deliver again from before the failover");
  }
}

/// For a primary with replicas. A switch to a replica begins with read_only on this server.
void check_switchover(const NativeConnection& sql, Report& report) {
  const auto privileges = query(
      sql,
      "SELECT privilege_type FROM information_schema.user_privileges WHERE privilege_type = 'READ_ONLY ADMIN' AND "
      "grantee = CONCAT(QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', 1)), '@', "
      "QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)))",
      1);
  if (privileges.empty()) return;
  report.warn("READ_ONLY ADMIN",
              "this user has it: when a replica takes over and this server becomes read-only, open connections of the "
              "user go on writing, and keys take effect on both servers",
              "REVOKE READ_ONLY ADMIN ON *.* FROM the service's user");
}

void check_galera(const Settings& global, const Settings& session, const Settings& status, Report& report) {
  const auto nodes = cluster_size(global, status);
  if (nodes == 0) return;
  if (!is_on(value_of(session, "wsrep_on"))) {
    report.fail("wsrep_on", "OFF: the other nodes do not hear of what is consumed here, and let the same keys in",
                "SET SESSION wsrep_on = ON");
  }
  const auto options = value_of(global, "wsrep_provider_options");
  for (const std::string_view name : {"pc.ignore_quorum", "pc.ignore_sb"}) {
    if (options.find(fmt::format("{} = true", name)) == std::string_view::npos) continue;
    report.fail(std::string(name), "true: when the network parts the nodes, a key can take effect in each part",
                fmt::format("SET GLOBAL wsrep_provider_options = '{}=false', and the same in the option file", name));
  }
  if (nodes == 1) {
    report.note("wsrep_cluster_size", "1: no other node has what is consumed here", "start the other nodes");
  }
  if (std::max(value_of(session, "wsrep_OSU_method"), value_of(session, "wsrep_osu_method")) == "RSU") {
    report.note("wsrep_OSU_method", "RSU: a migration through this session stays on this node",
                "SET SESSION wsrep_OSU_method = 'TOI' for txinbox migrate");
  }
}

void check_triggers(const NativeConnection& sql, Report& report) {
  std::string triggers;
  for (const Row& row : query(sql,
                              fmt::format("SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE "
                                          "EVENT_OBJECT_SCHEMA = DATABASE() AND EVENT_OBJECT_TABLE = '{}'",
                                          consumed_message_table),
                              1)) {
    triggers += (triggers.empty() ? "" : ", ") + row[0].value_or("");
  }
  if (triggers.empty()) return;
  report.warn(std::string(consumed_message_table), "it has triggers: " + triggers + "; they run with every claim",
              "make sure that they neither fail nor change the row, or remove them");
}

/// Checks the procedures of `V1__inbox.sql`. information_schema shows a user only procedures on which the user has
/// a privilege.
void check_procedures(const NativeConnection& sql, Report& report) {
  if (!flavour_of(parse_server_version(mysql_get_server_info(mysql_native(sql)))).procedures) return;
  constexpr auto executable =
      "SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE() AND ROUTINE_NAME IN "
      "('txinbox_begin_and_claim', 'txinbox_confirm_and_commit')";
  if (query_text(sql, executable) == "2") return;
  report.note("procedures", "this user may not execute them: a message takes seven round trips or more instead of two",
              "GRANT EXECUTE ON PROCEDURE txinbox_begin_and_claim, and the same ON PROCEDURE "
              "txinbox_confirm_and_commit, TO the user of the service");
}

/// Reports tables without transactions. What a handler writes there stays even if its claim is rolled back.
void check_engines(const NativeConnection& sql, Report& report) {
  constexpr std::size_t most_names = 10;
  constexpr auto without_transactions =
      "NOT IN (SELECT ENGINE FROM information_schema.ENGINES WHERE TRANSACTIONS = 'YES')";
  const auto tables =
      query(sql,
            fmt::format("SELECT TABLE_NAME, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() "
                        "AND TABLE_TYPE = 'BASE TABLE' AND TABLE_NAME NOT LIKE 'txinbox!_%' ESCAPE '!' "
                        "AND ENGINE {} ORDER BY TABLE_NAME",
                        without_transactions),
            2);
  if (!tables.empty()) {
    std::string names;
    for (std::size_t i = 0; i < std::min(tables.size(), most_names); ++i) {
      names += fmt::format("{}{} ({})", i == 0 ? "" : ", ", tables[i][0].value_or(""), tables[i][1].value_or(""));
    }
    if (tables.size() > most_names) names += fmt::format(" and {} others", tables.size() - most_names);
    report.warn(
        "tables without transactions",
        names + ": what a message's SQL writes there stays when the message fails, and its redelivery doubles it",
        "ALTER TABLE … ENGINE = InnoDB for those that messages write to");
  }
  const auto standard = query(
      sql,
      fmt::format("SELECT @@default_storage_engine FROM DUAL WHERE @@default_storage_engine {}", without_transactions),
      1);
  if (!standard.empty()) {
    report.note("default_storage_engine",
                fmt::format("{}: new tables have no transactions", standard.front()[0].value_or("")),
                "SET GLOBAL default_storage_engine = InnoDB, and the same in the server's option file");
  }
}

void check_numbers(const Settings& session, Report& report) {
  const auto increment = value_of(session, "auto_increment_increment");
  if (increment.empty() || increment == "1") return;
  report.note(
      "auto_increment_increment",
      fmt::format("{}: each server numbers its rows from a series of its own, so the outbox keeps the order of a "
                  "key only if all writers of the key use one server",
                  increment),
      "let all services that add messages to the outbox write to one server");
}

}  // namespace

std::vector<Finding> check_mysql_server(const NativeConnection& sql) {
  const auto session = query_settings(sql, fmt::format("SHOW SESSION VARIABLES{}", wanted_variables));
  const auto global = query_settings(sql, fmt::format("SHOW GLOBAL VARIABLES{}", wanted_variables));
  const auto status =
      query_settings(sql, "SHOW GLOBAL STATUS WHERE Variable_name IN ('Slaves_connected', 'wsrep_cluster_size')");
  Report report;
  const bool is_known = check_version(mysql_get_server_info(mysql_native(sql)), global, report);
  check_durability(global, session, cluster_size(global, status) > 1, report);
  check_waits(session, report);
  check_modes(global, session, report);
  check_replication(global, status, report);
  check_galera(global, session, status, report);
  check_numbers(session, report);
  if (is_known && has_replicas(status)) check_switchover(sql, report);
  if (is_known) check_procedures(sql, report);
  // On a server that we do not know, something that a check reads may be missing.
  for (const auto check : {check_triggers, check_engines, check_sharding}) {
    try {
      check(sql, report);
    } catch (const DatabaseError& error) {
      if (is_known) throw;
      report.note("unknown server", fmt::format("it refuses a query of doctor (error {})", error.code()),
                  "look for triggers on the tables of the inbox, and for tables without transactions");
    }
  }
  return report.take();
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
