#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include <txinbox/pool_options.hpp>
#include <txinbox/version.hpp>

namespace soci {
class session;
}

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

namespace detail {
class PoolState;
struct PoolAccess;
struct Slot;
}  // namespace detail

/// A connection lent by a pool; the destructor gives it back.
///
/// Threads: for one thread at a time. It may outlive the `Pool` object.
class Connection {
 public:
  Connection(Connection&&) noexcept;
  Connection& operator=(Connection&&) noexcept;

  /// Returns the connection clean: rolled back, and with the settings that it had, as `PoolOptions::on_connect`
  /// says. One that cannot be cleaned is closed, so that it holds no locks. Temporary tables and session-level
  /// advisory locks are the user's to drop; a temporary table that has the name of the inbox's closes the
  /// connection.
  ///
  /// Blocking: up to five short round trips.
  ~Connection();

  soci::session& session() const noexcept;
  soci::session& operator*() const noexcept { return session(); }
  soci::session* operator->() const noexcept { return &session(); }
  operator soci::session&() const noexcept { return session(); }  // NOLINT(google-explicit-constructor)

 private:
  friend struct detail::PoolAccess;
  Connection(std::shared_ptr<detail::PoolState>, std::unique_ptr<detail::Slot>) noexcept;

  std::shared_ptr<detail::PoolState> pool_;
  std::unique_ptr<detail::Slot> slot_;
};

/// Owned and configured connections to one database.
///
/// Its sessions are safe for the inbox by construction: READ COMMITTED, strict mode, UTF-8, autocommit,
/// the time-outs of `PoolOptions`, TCP keepalive; on MariaDB and MySQL the time zone is UTC; SQLite in WAL mode with
/// foreign keys and full synchronization. What `on_connect` changes is checked again when a consumer first uses a
/// session. On PostgreSQL a consumer's session is read-only outside its transactions, unless a pooler stands before the
/// server; a session that `acquire` lends is writable.
///
/// Threads:   `acquire` may be called from any number; moving must not race with it.
/// Processes: a child of fork() may not use the parent's pool, nor consumers on it: `forked`. It opens its own.
///            It may destroy them, which leaves the parent's connections alone and leaks the child's copies.
///            A child that was forked inside a handler, or with a `Connection` at hand, must not use that
///            session; let it end with exec or _exit.
class Pool {
 public:
  Pool(Pool&&) noexcept;
  Pool& operator=(Pool&&) noexcept;
  ~Pool();  ///< Closes idle connections; those lent are closed when they come back.

  /// A connection of one's own until the returned object dies.
  ///
  /// Blocking: up to `acquire_timeout` for a free one, and `connect_timeout` where it must be opened; a short
  ///           round trip on PostgreSQL.
  /// Errors:   `Error` acquire_timeout; `stopped` when `stop` was set meanwhile; `forked`; what the
  ///           database said when it could not be opened.
  Connection acquire(std::stop_token stop = {});

  const PoolOptions& options() const noexcept;

 private:
  friend struct detail::PoolAccess;
  explicit Pool(std::shared_ptr<detail::PoolState>) noexcept;

  std::shared_ptr<detail::PoolState> state_;
};

/// Opens a pool and its first connection.
///
/// `url` is `sqlite:orders.db`, `sqlite:///var/lib/orders.db`, `sqlite::memory:` (one connection
/// only), `mysql://user@host:3306/db` or `mariadb://…`, `postgresql://user@host/db?sslmode=require`
/// or `postgres://…`, or a connection string of SOCI's behind `soci:`, such as
/// `soci:mysql://db=orders user=svc`. Special characters are percent-encoded. A password may stand in
/// the URL (keep that out of command lines), in `~/.pgpass` or `PGPASSWORD`, or in the `[client]`
/// group of `~/.my.cnf`. `unix_socket`, `sslmode`, `sslca`, `sslcert`, `sslkey` and `charset` may follow a MySQL
/// URL, every libpq parameter a PostgreSQL one. `sslmode` means the same on both: `require` for encryption,
/// `verify-ca` and `verify-full` for a checked certificate; a server that does not offer it is refused before the
/// client logs in. What the `[client]` group says about TLS counts where the URL says nothing (SECURITY.md).
///
/// Blocking: `connect_timeout`.
/// Errors:   `Error` invalid_argument for a URL or an option, or for a file of its that cannot be read;
///           unsupported_database for a database that is not compiled in; unsafe_connection for `reconnect=1`, for
///           `sslca` in a connection string of SOCI's, or for an in-memory SQLite database with more than one
///           connection; what the database said when it could not be reached. No text holds the password, or a
///           value of the URL's parameters.
Pool open_pool(const std::string& url, PoolOptions options = {});

TXINBOX_NAMESPACE_END
}  // namespace txinbox
