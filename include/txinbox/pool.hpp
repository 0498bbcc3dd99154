#pragma once

/// @file
/// A pool of connections that are configured for the inbox.

#include <memory>
#include <stop_token>
#include <string>

#include <txinbox/pool_options.hpp>
#include <txinbox/version.hpp>

namespace soci {
class session;
}

namespace txinbox {
TXINBOX_API_BEGIN

namespace detail {
class PoolState;
struct PoolAccess;
struct Slot;
}  // namespace detail

/// A connection that a pool has lent. The destructor gives it back.
///
/// @threads one at a time. The object may outlive the `Pool` object.
class Connection {
 public:
  /// Takes the connection over. The moved-from object has no connection: it may only be assigned to or destroyed.
  Connection(Connection&&) noexcept;

  /// Exchanges the connections of the two objects. `other` gives the old one back when it is destroyed.
  Connection& operator=(Connection&& other) noexcept;

  /// Gives the connection back to the pool: it rolls back, and restores the settings that are listed at
  /// `PoolOptions::on_connect`. If that fails, it closes the connection, so that the connection holds no locks.
  ///
  /// It does not drop temporary tables or session-level advisory locks: the user must. On MariaDB and MySQL with
  /// session tracking, a temporary table with the name of the consumed-message table makes it close the connection.
  ///
  /// @blocking at most six short round trips.
  ~Connection();

  /// The SOCI session of this connection. It is valid as long as this object has the connection.
  soci::session& session() const noexcept;

  /// The same as `session`: `*connection << "select 1"`.
  soci::session& operator*() const noexcept { return session(); }

  /// Gives access to a member of `session`: `connection->begin()`.
  soci::session* operator->() const noexcept { return &session(); }

  /// Lets a function that needs a session take the connection: `txinbox::migrate(connection)`.
  operator soci::session&() const noexcept { return session(); }  // NOLINT(google-explicit-constructor)

 private:
  friend struct detail::PoolAccess;
  Connection(std::shared_ptr<detail::PoolState>, std::unique_ptr<detail::Slot>) noexcept;

  std::shared_ptr<detail::PoolState> pool_;
  std::unique_ptr<detail::Slot> slot_;
};

/// A pool of configured connections to one database.
///
/// The pool makes the settings that the inbox needs: READ COMMITTED, strict mode, UTF-8, autocommit, the time-outs of
/// `PoolOptions`, TCP keepalive. On MariaDB and MySQL the time zone is UTC. SQLite runs in WAL mode with foreign keys
/// and full synchronization. The pool refuses unsafe settings after `on_connect` has run, and again when a consumer
/// uses the session for the first time.
///
/// On MariaDB and MySQL, a session that is opened on a read-only server is read-only, whatever privileges its user has.
/// So a message does not take effect on a replica.
///
/// On PostgreSQL, a consumer's session is read-only outside of its transactions, unless the client connects through a
/// pooler. A session that `acquire` lends is writable.
///
/// @threads   any number may call `acquire`. No thread may move the pool while another one uses it.
/// @processes a child of fork() must not use the parent's pool, nor consumers on it: they throw `forked`. It opens a
///            pool of its own. On SQLite it cannot do this for a file that a pool of its parent had open at fork():
///            this throws `forked`, too, because SQLite's locks do not survive fork(). The child may destroy the
///            parent's pool: this does not touch the parent's connections, and leaks the child's copies. A child that
///            was forked inside a handler, or while it had a `Connection`, must not use that session. It must end with
///            exec or _exit.
class Pool {
 public:
  /// Takes the connections over. The moved-from pool may only be assigned to or destroyed.
  Pool(Pool&&) noexcept;

  /// Takes the connections of the other pool over. It releases its own connections as the destructor does.
  Pool& operator=(Pool&&) noexcept;

  /// Releases the connections. They are closed when the last `Connection`, consumer and purger on the pool is
  /// destroyed.
  ~Pool();

  /// Lends a connection until the returned object is destroyed.
  ///
  /// @blocking at most `acquire_timeout` for a free connection, and `connect_timeout` if it must be opened; on
  ///           PostgreSQL a short round trip.
  /// @errors
  /// - `Error` acquire_timeout if no connection became free in time.
  /// - `Error` stopped if `stop` was set during the wait.
  /// - `Error` forked in a child of the process that opened the pool.
  /// - If it opens a connection, the errors of `open_pool`.
  Connection acquire(std::stop_token stop = {});

  /// The options with which the pool was opened.
  const PoolOptions& options() const noexcept;

 private:
  friend struct detail::PoolAccess;
  explicit Pool(std::shared_ptr<detail::PoolState>) noexcept;

  std::shared_ptr<detail::PoolState> state_;
};

/// Opens a pool and its first connection.
///
/// `url` has one of these forms. Special characters are percent-encoded.
/// - `sqlite:orders.db`, `sqlite:///var/lib/orders.db`, `sqlite::memory:` (with one connection only)
/// - `mysql://user@host:3306/db` or `mariadb://…`
/// - `postgresql://user@host/db?sslmode=require` or `postgres://…`
/// - `soci:` and a connection string of SOCI, such as `soci:mysql://db=orders user=svc`
///
/// A MySQL URL may have the parameters `unix_socket`, `sslmode`, `sslca`, `sslcert`, `sslkey` and `charset`. A
/// PostgreSQL URL may have every parameter of libpq.
///
/// The password may be in the URL, but do not pass such a URL on a command line. It may also be in `~/.pgpass`, in
/// `PGPASSWORD`, or in the `[client]` group of `~/.my.cnf`.
///
/// `sslmode` means the same on both databases: `require` encrypts, `verify-ca` and `verify-full` also verify the
/// server's certificate. If the server does not offer this, it is refused before the client logs in. The TLS settings
/// of the `[client]` group count where the URL has none (SECURITY.md).
///
/// @blocking at most `connect_timeout`.
/// @errors
/// - `Error` invalid_argument for a URL, an option, or a file named in the URL that cannot be read.
/// - `Error` unsupported_database for a database that is not compiled in.
/// - `Error` unsafe_connection for `reconnect=1`, for `sslca` in a connection string of SOCI, for an in-memory SQLite
///   database with more than one connection, for a MySQL connection that should be encrypted and is not, or for an
///   unsafe setting that `on_connect` made.
/// - `Error` transaction_open if `on_connect` left a transaction open.
/// - `Error` access_refused if the server refuses the user, password or database, or the file cannot be used.
/// - A database error as it was if the database cannot be reached.
/// - What `on_connect` throws.
///
/// No text of txinbox holds the password, or a value of the URL's parameters.
Pool open_pool(const std::string& url, PoolOptions options = {});

TXINBOX_API_END
}  // namespace txinbox
