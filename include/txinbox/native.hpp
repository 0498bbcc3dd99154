#pragma once

/// @file
/// The connections of the databases' own client libraries: as the connection of a consumer, and inside a handler.
/// txinbox.hpp does not include this header, because it declares names of the client libraries.

#include <string_view>

#include <txinbox/connection_ref.hpp>
#include <txinbox/version.hpp>

// As libpq, the clients of MariaDB and MySQL, and SQLite declare their connections.
struct pg_conn;
struct st_mysql;
struct sqlite3;

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

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
  /// @errors `Error` invalid_argument if `database` is another one.
  pg_conn* postgresql() const { return static_cast<pg_conn*>(of("postgresql")); }

  /// The connection for the functions of the MariaDB or MySQL client. `MYSQL` is another name of its type.
  ///
  /// @errors `Error` invalid_argument if `database` is another one.
  st_mysql* mysql() const { return static_cast<st_mysql*>(of("mysql")); }

  /// The connection for SQLite's functions.
  ///
  /// @errors `Error` invalid_argument if `database` is another one.
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

/// The connection behind a session, for example the session that a handler gets. SQL on it runs in the same transaction
/// as SQL on the session. So a handler can use libpq, libpqxx, the MariaDB client or sqlite3 instead of SOCI. A handler
/// that takes such a connection gets it without this function.
///
/// In a handler, treat the connection as the session: do not end the transaction, do not close or reset the connection,
/// and do not keep it. Read all results, and leave neither pipeline mode nor single-row mode on. Statements that stay
/// prepared on a pool's connection last as long as the connection: `Delivery::per_connection` can hold their names.
///
/// Throw any exception if a statement fails. txinbox then asks the connection for the code of its last error. So a
/// deadlock, a lock time-out or a serialization failure is run again, whatever the exception is; in a pool also a lost
/// connection. On PostgreSQL the code counts only if the transaction is aborted or has ended: an error from which the
/// handler has recovered by a savepoint does not count. On the other databases it counts if the handler's last
/// statement failed. On SQLite, finalize or reset each statement before the next one runs: if an earlier statement is
/// finalized after the error, SQLite forgets the error's code. `TxConsumerOptions::is_transient` can then declare the
/// exception.
///
/// @errors `Error` unsupported_database if the session is not connected, or if its database is not linked.
/// @threads only the session's thread.
NativeHandle native_handle(soci::session& session);

TXINBOX_NAMESPACE_END
}  // namespace txinbox
