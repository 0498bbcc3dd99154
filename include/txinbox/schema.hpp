#pragma once

#include <string>
#include <vector>

#include <txinbox/version.hpp>

namespace soci {
class session;
}

namespace txinbox::inline TXINBOX_ABI {

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
void migrate(soci::session& session);

/// Checks that the tables are those of the migrations and that the session is safe to consume on.
///
/// Transaction: none may be open.
/// Errors:      `Error` listing every finding with its mend. The code is the first that applies of
///              schema_missing, schema_outdated, schema_too_new, schema_mismatch, unsafe_connection.
void verify(soci::session& session);

}  // namespace txinbox::inline TXINBOX_ABI
