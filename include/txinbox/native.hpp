#pragma once

/// @file
/// The connections of the databases' own client libraries. A consumer or a handler can use such a connection.
/// txinbox.hpp does not include this header, because it declares names of the client libraries.

#include <string_view>

#include <txinbox/connection_ref.hpp>
#include <txinbox/version.hpp>

// libpq, the clients of MariaDB and MySQL, and SQLite declare their connections with these names.
struct pg_conn;
struct st_mysql;
struct sqlite3;

namespace txinbox {
TXINBOX_API_BEGIN

/// @cond
namespace detail {

class HandlerConnection;

template <>
inline constexpr std::string_view native_database<pg_conn> = "postgresql";
template <>
inline constexpr std::string_view native_database<st_mysql> = "mysql";
template <>
inline constexpr std::string_view native_database<::sqlite3> = "sqlite3";

}  // namespace detail
/// @endcond

/// A connection of a database's own client library: a PGconn*, a MYSQL* or a sqlite3*. It does not own the connection.
class NativeHandle {
 public:
  /// A connection of libpq.
  explicit NativeHandle(pg_conn* connection) noexcept : database_("postgresql"), connection_(connection) {}

  /// A connection of the client library of MariaDB or MySQL.
  explicit NativeHandle(st_mysql* connection) noexcept : database_("mysql"), connection_(connection) {}

  /// A connection of SQLite.
  explicit NativeHandle(::sqlite3* connection) noexcept : database_("sqlite3"), connection_(connection) {}

  /// "postgresql", "mysql" or "sqlite3".
  std::string_view database() const noexcept { return database_; }

  /// The connection for libpq's functions. `PGconn` is another name of its type.
  ///
  /// @errors `Error` invalid_argument if `database` is not "postgresql".
  pg_conn* postgresql() const { return static_cast<pg_conn*>(of("postgresql")); }

  /// The connection for the functions of the MariaDB or MySQL client. `MYSQL` is another name of its type.
  ///
  /// @errors `Error` invalid_argument if `database` is not "mysql".
  st_mysql* mysql() const { return static_cast<st_mysql*>(of("mysql")); }

  /// The connection for SQLite's functions.
  ///
  /// @errors `Error` invalid_argument if `database` is not "sqlite3".
  ::sqlite3* sqlite3() const { return static_cast<::sqlite3*>(of("sqlite3")); }

 private:
  friend NativeHandle native_handle(soci::session& session);
  friend class ConnectionRef;
  friend class detail::HandlerConnection;
  NativeHandle(std::string_view database, void* connection) noexcept : database_(database), connection_(connection) {}
  void* of(std::string_view database) const;

  std::string_view database_;
  void* connection_;
};

/// Returns the connection of a session, for example of the session that a handler gets. SQL on the connection runs in
/// the same transaction as SQL on the session. So a handler can use libpq, libpqxx, the MariaDB client or sqlite3
/// instead of SOCI. A handler that takes such a connection as its parameter does not need this function.
///
/// In a handler, the rules for the session also apply to the connection: do not end the transaction, do not close or
/// reset the connection, and do not keep it. Read all results, and leave neither pipeline mode nor single-row mode on.
/// Statements that stay prepared on a pool's connection exist as long as the connection, if
/// `Delivery::keeps_statements` is true: `Delivery::per_connection` can hold their names.
///
/// Throw any exception if a statement fails. txinbox then asks the connection for the code of its last error. So the
/// message runs again after a deadlock, a lock time-out or a serialization failure, whatever the exception is. In a
/// pool it also runs again after a lost connection. On PostgreSQL the code counts only if the transaction is aborted or
/// has ended. So an error does not count if the handler has rolled back to a savepoint after it. On the other databases
/// the code counts if the handler's last statement failed. On SQLite, finalize or reset each statement before the next
/// one runs. If an earlier statement is finalized after the error, SQLite forgets the error's code. In that case
/// `ConsumerOptions::is_transient` can declare the exception transient.
///
/// @errors `Error` unsupported_database if the session is not connected, or if its database is not linked.
/// @threads only the session's thread.
NativeHandle native_handle(soci::session& session);

TXINBOX_API_END
}  // namespace txinbox
