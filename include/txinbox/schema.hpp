#pragma once

/// @file
/// Creates, upgrades and verifies the tables.

#include <optional>
#include <string>
#include <vector>

#include <txinbox/connection_ref.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

/// One migration of the schema: the file `migrations/<database>/V<version>__<name>.sql`.
struct Migration {
  int version;       ///< From 1 on, without gaps. The same number on every database.
  std::string name;  ///< The name in the name of the file, such as "inbox".
  std::string sql;   ///< The text of the file: one or more statements.
};

/// The migrations for a database, in the order of their versions. `database` is "sqlite3", "mysql" (MariaDB and MySQL)
/// or "postgresql".
///
/// @errors `Error` unsupported_database for another name, and for a database that is not compiled in.
std::vector<Migration> migrations(const std::string& database);

/// Applies the migrations that are not applied yet, then verifies the tables. It does not change what earlier
/// migrations made, so a service may call it at every start, from several processes at once.
///
/// If something is missing although its migration is recorded, all migrations run again, and create what is missing.
///
/// @transaction its own; none may be open. On SQLite and PostgreSQL all migrations and their versions commit together.
///              MariaDB and MySQL commit each DDL statement. There, the next call completes an interrupted migration.
/// @blocking    it waits for another `migrate` on the same database, at most a minute, and on SQLite for every writer
/// of
///              the file. It does so also if no migration is pending. A migration of a large table can
///              take long. On MariaDB and MySQL, a pool's connection waits for the reply of a statement at most 5 s
///              longer than the larger one of `statement_timeout` and `lock_timeout`. Then `migrate` throws, and the
///              server goes on. So for a large table set a long `statement_timeout`, or use `txinbox migrate`.
/// @errors
/// - `Error` transaction_open.
/// - `Error` schema_mismatch if tables with these names have another structure.
/// - `Error` with another schema code if the tables are still not right.
/// - A database error as it was.
///
/// @return the migrations that this call has applied, in order, also those that it ran again. If several processes call
///         it at once, only one of them gets the migrations.
std::vector<Migration> migrate(ConnectionRef connection);

/// Whether one migration is applied, and since when.
struct MigrationState {
  int version = 0;       ///< See `Migration::version`.
  std::string name;      ///< The name in this library; if it does not contain the migration, the recorded name.
  bool known = true;     ///< This library contains it. If not, a newer library has applied it.
  bool applied = false;  ///< Its version is recorded in the database, by `migrate` or by another tool.
  std::optional<DatabaseTime> applied_at;  ///< When it was applied; none if it was not.
};

/// Lists each migration that this library contains or that is recorded in the database, in the order of their versions.
/// It changes nothing. It reads only the records; `diagnose` compares the tables. If the table with the records does
/// not exist, no migration is listed as applied.
///
/// @transaction none may be open.
/// @errors      `Error` transaction_open; a database error as it was.
std::vector<MigrationState> migration_states(ConnectionRef connection);

/// Verifies that the tables are those of the migrations, and that the session is safe for consuming. It accepts tables
/// on which only the migrations V3 and V4 are missing, because consumers do not need them.
///
/// @transaction none may be open.
/// @errors
/// - `Error` with a text that lists every finding and its remedy. Its code is the first that applies of schema_missing,
///   schema_outdated, schema_too_new, schema_mismatch, unsafe_connection. If the consumed-message table has another
///   structure and there is no table of migrations, it is schema_mismatch.
/// - `Error` transaction_open.
/// - A database error as it was.
void verify(ConnectionRef connection);

TXINBOX_API_END
}  // namespace txinbox
