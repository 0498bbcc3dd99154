#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <txinbox/inspect.hpp>

#include "admin/inbox_findings.hpp"
#include "admin/status_reader.hpp"
#include "backend/connection_access.hpp"
#include "backend/database.hpp"
#include "backend/failure.hpp"
#include "backend/query.hpp"
#include "backend/table_check.hpp"
#include "schema/verification.hpp"
#include "tables/pause_table.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

constexpr std::chrono::seconds recent(10);

/// Calls `read` if the table is there. An error that says that this user may not read it is ignored.
///
/// A server would log the query of a table that does not exist, but not a look into the catalog.
template <class F>
void read_if_allowed(backend::Catalog& catalog, std::string_view table, const F& read) {
  if (catalog.find_schema(table).empty()) return;
  try {
    read();
  } catch (...) {
    const detail::Failure failure = detail::Failure::current();
    if (!failure.is_of_database() || failure.is_transient() || failure.is_of_environment()) throw;
  }
}

std::set<std::string> paused_consumers(const backend::NativeConnection& connection, const backend::Dialect& sql) {
  std::set<std::string> names;
  for (const backend::Row& row :
       backend::query(connection,
                      fmt::format("SELECT consumer FROM {} WHERE {} {}", sql.table(backend::pause_table),
                                  detail::is_paused(sql), backend::all_rows),
                      1)) {
    names.insert(row[0].value_or(""));
  }
  return names;
}

void read_outbox(const backend::NativeConnection& connection, const backend::Dialect& sql, QuickStatus& status) {
  for (const backend::Row& row : backend::query(
           connection,
           fmt::format("SELECT {}, {} FROM {} WHERE parked_at IS NULL ORDER BY seq LIMIT 1", sql.utc_text("created_at"),
                       sql.milliseconds_since("created_at"), sql.table(backend::outbox_message_table)),
           2)) {
    status.outbox_oldest = backend::time_in(row[0]);
    status.outbox_oldest_age = std::chrono::milliseconds(backend::number_in(row[1].value_or("")));
  }
}

QuickConsumerStatus quick(ConsumerStatus found, bool has_leases) {
  QuickConsumerStatus consumer{.consumer = std::move(found.consumer),
                               .failed = found.failed,
                               .parked = found.parked,
                               .conflicts = found.conflicts,
                               .duplicates = found.duplicates,
                               .oldest_duplicate = found.oldest_duplicate,
                               .oldest_duplicate_at = found.oldest_duplicate_at,
                               .retention = found.retention,
                               .purged_at = found.purged_at,
                               .purged = found.purged};
  if (has_leases) {
    consumer.leases_held = found.leases_held;
    consumer.expired_leases = found.expired_leases;
  }
  return consumer;
}

int newest_migration(const backend::NativeConnection& connection, const backend::Dialect& sql) {
  return static_cast<int>(backend::number_in(
      backend::query_text(connection, fmt::format("SELECT max(version) FROM {}", sql.table(backend::schema_table)))));
}

}  // namespace

QuickStatus quick_status(ConnectionRef connection) {
  const backend::ConnectionPtr& sql = detail::ConnectionAccess::of(connection);
  const backend::Database& database = sql->database();
  const detail::OutsideTransaction outside(sql);
  const auto catalog = database.catalog(sql);
  const auto schema = detail::schema_of_tables(*catalog, backend::inbox_tables);
  const auto dialect = database.dialect(schema);
  const backend::TableEstimate estimate = catalog->estimate(schema);
  const bool has_leases = catalog->has_lease_index(schema);

  detail::StatusReader reader(*sql, *dialect);
  reader.find_names();
  reader.read_failed(detail::StatusReader::Parked::counted);
  reader.read_conflicts();
  if (has_leases) reader.read_leases();
  const auto recently = reader.consumed_within(recent);
  const auto notes = detail::read_notes(*sql, *dialect);
  reader.add(notes);
  std::set<std::string> paused;
  read_if_allowed(*catalog, backend::pause_table, [&] { paused = paused_consumers(*sql, *dialect); });

  QuickStatus status{.database = std::string(database.name()),
                     .server_version = catalog->server_version(),
                     .schema_version = newest_migration(*sql, *dialect),
                     .estimated_rows = estimate.rows,
                     .estimated_bytes = estimate.bytes,
                     .purged = detail::notes_of("", notes).purged};
  for (ConsumerStatus& each : reader.take()) {
    QuickConsumerStatus& consumer = status.consumers.emplace_back(quick(std::move(each), has_leases));
    const auto count = recently.find(consumer.consumer);
    if (count != recently.end()) consumer.last_ten_seconds = count->second;
    consumer.paused = paused.contains(consumer.consumer);
  }
  read_if_allowed(*catalog, backend::outbox_message_table, [&] { read_outbox(*sql, *dialect, status); });
  return status;
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
