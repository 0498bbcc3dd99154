#pragma once

#include "support/test_database.hpp"

namespace txinbox::test {

// The capabilities of the database of this run. A test asks for what it needs, not for a product. So a new database
// needs its answers only here. docs/reference/guard.md and docs/reference/databases.md explain the words. `on_sqlite3`
// and the like are for SQL, URLs and settings that only one product has.

/// The database is a server. Its connections can be lost, and the server can end them. All but SQLite.
inline bool has_server() { return !on_sqlite3(); }

/// The database has users with privileges. All but SQLite.
inline bool has_users() { return !on_sqlite3(); }

/// Only one transaction at a time can write. The others wait, even if they write other rows. SQLite.
inline bool one_writer() { return on_sqlite3(); }

/// The database refuses a handler's own COMMIT of its claim, in a pool and on a caller's session. So no claim is torn.
/// PostgreSQL.
inline bool refuses_foreign_commit() { return on_postgresql(); }

/// In a pool, the database refuses a handler's own COMMIT of its claim. So no claim of a pool is torn. PostgreSQL and
/// SQLite.
inline bool pool_refuses_foreign_commit() { return on_postgresql() || on_sqlite3(); }

/// As `pool_refuses_foreign_commit`, but a handler on a caller's session can commit its claim. So a test that needs a
/// torn claim uses a session. SQLite.
inline bool only_pool_refuses_foreign_commit() { return pool_refuses_foreign_commit() && !refuses_foreign_commit(); }

/// In a pool, the database refuses every COMMIT of a handler, also of a transaction that the handler began. SQLite.
inline bool pool_refuses_every_commit() { return on_sqlite3(); }

/// A deadlock ends the transaction. On PostgreSQL it aborts the transaction, and SQLite has no deadlocks. MariaDB and
/// MySQL.
inline bool deadlock_ends_transaction() { return on_mysql(); }

/// At REPEATABLE READ, a transaction cannot change a row that another one has changed since its snapshot. MariaDB, with
/// a variable, and PostgreSQL.
inline bool has_serialization_failures() { return on_mariadb() || on_postgresql(); }

/// A statement that creates or changes a table ends the transaction with a commit. MariaDB and MySQL.
inline bool ddl_commits() { return on_mysql(); }

/// A constraint can be checked at the COMMIT, so that the COMMIT fails. PostgreSQL and SQLite.
inline bool defers_constraints() { return on_postgresql() || on_sqlite3(); }

/// A session can switch autocommit off. MariaDB and MySQL.
inline bool has_autocommit_setting() { return on_mysql(); }

/// In a pool, txinbox calls procedures of its own, and sends more statements before the COMMIT. MySQL, not MariaDB.
inline bool has_procedures() { return on_mysql() && !on_mariadb(); }

/// The server ends each statement that runs too long. MySQL ends only a SELECT that writes nothing. MariaDB and
/// PostgreSQL.
inline bool ends_long_statements() { return on_mariadb() || on_postgresql(); }

/// SQL can raise an error with any error code. All but SQLite.
inline bool can_raise_errors() { return !on_sqlite3(); }

/// A missing table has an error code of its own. SQLite reports it with the same code as wrong SQL. All but SQLite.
inline bool missing_table_has_own_code() { return !on_sqlite3(); }

/// A client can read the changes of a table from the server's log, as Debezium does. PostgreSQL, and MariaDB and MySQL
/// with a binary log.
inline bool has_log_of_changes() { return on_postgresql() || has_binary_log(); }

/// The database tells which open transactions have inserted messages into the outbox. PostgreSQL.
inline bool knows_writers() { return on_postgresql(); }

}  // namespace txinbox::test
