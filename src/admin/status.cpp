#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <txinbox/inspect.hpp>

#include "admin/inbox_findings.hpp"
#include "admin/status_reader.hpp"
#include "backend/connection_access.hpp"
#include "backend/database.hpp"
#include "backend/query.hpp"
#include "backend/table_check.hpp"
#include "message/key.hpp"
#include "schema/verification.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

InboxStatus inbox_status(ConnectionRef connection, std::string_view consumer) {
  if (!consumer.empty()) detail::check_consumer(consumer);
  const backend::ConnectionPtr& sql = detail::ConnectionAccess::of(connection);
  const detail::NoNewTransaction no_new(sql);
  const backend::Database& database = sql->database();
  const auto catalog = database.catalog(sql);
  const auto schema = detail::schema_of_tables(*catalog, backend::inbox_tables);
  const auto dialect = database.dialect(schema);
  InboxStatus status{
      .database = std::string(database.name()), .server_version = catalog->server_version(), .consumers = {}};
  status.schema_version = detail::examine(*catalog, database.name()).version;
  status.encryption = catalog->transport().encryption;
  status.bytes = catalog->table_bytes(schema);

  detail::StatusReader reader(*sql, *dialect, consumer);
  const auto notes = detail::read_notes(*sql, *dialect);
  status.rows = reader.read_rows(notes);
  reader.read_last_minute();
  reader.read_failed();
  reader.read_conflicts();
  reader.add(notes);
  status.purged = detail::notes_of("", notes).purged;
  status.consumers = reader.take();
  return status;
}

bool has_consumer(ConnectionRef connection, std::string_view consumer) {
  detail::check_consumer(consumer);
  const backend::ConnectionPtr& sql = detail::ConnectionAccess::of(connection);
  const detail::NoNewTransaction no_new(sql);
  const backend::Database& database = sql->database();
  const auto catalog = database.catalog(sql);
  const auto schema = detail::schema_of_tables(*catalog, backend::inbox_tables);
  const auto dialect = database.dialect(schema);
  // The primary key of each table begins with the consumer, so each query reads little.
  return std::ranges::any_of(backend::inbox_tables, [&](std::string_view table) {
    return !backend::query(*sql,
                           fmt::format("SELECT consumer FROM {} WHERE consumer = {} LIMIT 1", dialect->table(table),
                                       dialect->text(consumer)),
                           1)
                .empty();
  });
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
