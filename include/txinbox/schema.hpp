#pragma once

#include <string>
#include <vector>

#include <txinbox/version.hpp>

namespace soci {
class session;
}

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

/// One step of the schema, as in `migrations/<database>/V<version>__<name>.sql`.
struct Migration {
  int version;
  std::string name;
  std::string sql;
};

/// The migrations for a database: "sqlite3", "mysql" (MariaDB and MySQL) or "postgresql", in order.
///
/// Errors: `Error` unsupported_database for another name or one that is not compiled in.
std::vector<Migration> migrations(const std::string& database);

/// Applies the migrations that are not applied yet, then verifies. Applied ones are left alone, so it
/// may run at every start, from several processes at once.
///
/// Transaction: its own; none may be open. On SQLite and PostgreSQL each migration and its version
///              commit together; MariaDB and MySQL commit each DDL statement, and an interrupted
///              migration is completed by the next call.
/// Blocking:    waits for another `migrate` on the same database, up to a minute.
/// Errors:      `Error` transaction_open; schema_mismatch when tables of these names have another
///              shape; a database error as it was.
/// @return the migrations that this call has applied, in order: of several processes at once, one gets them. Those that
///         ran again to complete an interrupted migration, or since a table was gone, are among them.
std::vector<Migration> migrate(soci::session& session);

/// What has become of one migration.
struct MigrationState {
  int version = 0;
  std::string name;
  bool known = true;       ///< This library brings it. Otherwise a newer one has applied it.
  bool applied = false;    ///< By `migrate` or in another way: its version is recorded.
  std::string applied_at;  ///< UTC, as "2026-01-31 23:59:59.123456"; empty unless it is applied.
};

/// Each migration that this library brings or that is recorded in the database, in order. Changes nothing. It reads the
/// records and not the tables: `diagnose` compares those.
///
/// Errors: a database error as it was. Where no table records migrations, none is applied.
std::vector<MigrationState> migration_states(soci::session& session);

/// Checks that the tables are those of the migrations and that the session is safe to consume on.
///
/// Transaction: none may be open.
/// Errors:      `Error` listing every finding with its remedy. The code is the first that applies of
///              schema_missing, schema_outdated, schema_too_new, schema_mismatch, unsafe_connection.
void verify(soci::session& session);

TXINBOX_NAMESPACE_END
}  // namespace txinbox
