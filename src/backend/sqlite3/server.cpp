#include <fmt/format.h>

#include "backend/database_error.hpp"
#include "backend/query.hpp"
#include "backend/report.hpp"
#include "backend/sqlite3/native.hpp"
#include "backend/sqlite3/parts.hpp"
#include "backend/sqlite3/statement.hpp"
#include "backend/table_check.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

constexpr int oldest_supported = 3035000;  // the first version with RETURNING

bool is_in_memory(const NativeConnection& sql) {
  const char* file = sqlite3_db_filename(sqlite3_native(sql), "main");
  return file == nullptr || *file == '\0';
}

}  // namespace

std::vector<Finding> check_sqlite3_server(const NativeConnection& sql) {
  Report report;
  if (sqlite3_libversion_number() < oldest_supported) {
    report.warn("SQLite", fmt::format("version {} is older than 3.35", sqlite3_libversion()), "upgrade SQLite");
  }
  if (is_in_memory(sql)) {
    report.warn("database", "it is in memory: everything that was consumed is forgotten when it is closed",
                "use a file, unless this is a test");
    return report.take();
  }

  const auto journal_mode = query_text(sql, "PRAGMA main.journal_mode");
  if (journal_mode == "memory") {
    report.warn("journal_mode", "memory: a crash within a transaction can destroy the file",
                "PRAGMA journal_mode = WAL");
  } else if (journal_mode != "wal" && journal_mode != "off") {
    report.warn("journal_mode", journal_mode + ": readers and the writer block each other, and a COMMIT can be busy",
                "PRAGMA journal_mode = WAL, once: it is kept in the file (not on a network file system)");
  }
  const auto synchronous = number_in(query_text(sql, "PRAGMA main.synchronous"), 2);
  if (synchronous < 2) {
    report.warn("synchronous",
                fmt::format("{}: a power failure can undo messages that were acknowledged{}",
                            synchronous == 1 ? "NORMAL" : "OFF", journal_mode == "wal" ? "" : ", or damage the file"),
                "PRAGMA synchronous = FULL on each connection; open_pool sets EXTRA");
  } else if (synchronous == 2 && journal_mode == "delete") {
    report.warn("synchronous",
                "FULL: in journal mode delete a power failure can undo the last messages that were acknowledged",
                "PRAGMA journal_mode = WAL, once, or PRAGMA synchronous = EXTRA on each connection");
  }
  if (query_text(sql, "PRAGMA foreign_keys") == "0") {
    report.note("foreign_keys", "off: foreign keys of the business tables are not checked",
                "PRAGMA foreign_keys = ON on each connection; open_pool does so");
  }
  if (query_text(sql, "PRAGMA busy_timeout") == "0") {
    report.warn("busy_timeout", "0: a second writer fails at once",
                "add timeout=10 (seconds) to SOCI's connection string; open_pool sets lock_timeout");
  }
  if (query_text(sql, "PRAGMA query_only") == "1") {
    report.warn("query_only", "on: nothing can be consumed on this connection", "PRAGMA query_only = OFF");
  }
  const auto attached =
      query_text(sql, "SELECT group_concat(name, ', ') FROM pragma_database_list WHERE name NOT IN ('main', 'temp')");
  if (!attached.empty()) {
    report.warn(
        "attached databases",
        attached + ": in WAL mode a crash can commit one file and not the other, so that a claim and its effect part",
        "keep the business tables in the file that holds txinbox_consumed_message");
  }
  const auto triggers =
      query_text(sql, fmt::format("SELECT group_concat(name, ', ') FROM sqlite_master WHERE type = 'trigger' AND "
                                  "tbl_name = '{}'",
                                  consumed_message_table));
  if (!triggers.empty()) {
    report.warn(std::string(consumed_message_table), "it has triggers: " + triggers + "; they run with every claim",
                "make sure that they neither fail nor change the row, or remove them");
  }
  return report.take();
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
