#pragma once

/// @file
/// How a pool connects, and its time-outs.

#include <chrono>
#include <cstddef>
#include <functional>

#include <txinbox/version.hpp>

namespace soci {
class session;
}

namespace txinbox {
TXINBOX_API_BEGIN

/// How a pool connects, and how long its sessions may wait.
///
/// Each time-out is from 1 ms to 24 days, so txinbox never waits forever. This is also true if the network is silent.
/// If the server sends nothing for the longer of `statement_timeout` and `lock_timeout`, plus 5 s, txinbox closes the
/// connection. On MariaDB and MySQL this also covers the statements of a handler. For PostgreSQL,
/// docs/reference/blocking.md names the exception.
///
/// Servers count some time-outs in whole seconds. The values for these are rounded up.
struct PoolOptions {
  /// At most this many connections are open at once; at least 1. The pool opens them when they are needed.
  std::size_t connections = 4;

  /// How long `acquire` and the consumers wait for a free connection.
  std::chrono::milliseconds acquire_timeout{30'000};

  /// How long one attempt to connect may take.
  std::chrono::milliseconds connect_timeout{10'000};

  /// How long a statement waits for a row lock, a table lock or, on SQLite, the writer's lock. So a second delivery of
  /// a key also waits at most this long for the end of the first.
  std::chrono::milliseconds lock_timeout{10'000};

  /// How long one statement may run. MySQL itself limits only SELECT. For the other statements of MySQL, the
  /// connection's read time-out applies, which is a little longer. SQLite has no such limit.
  std::chrono::milliseconds statement_timeout{30'000};

  /// How long the server keeps a transaction open if its client is silent. If a consumer's host disappears, its keys
  /// are free after this time. If a handler computes for a longer time between two statements, it loses its
  /// transaction. MySQL, but not MariaDB, also closes idle connections after this time.
  std::chrono::milliseconds idle_transaction_timeout{300'000};

  /// The pool calls it on each new session, after it has made the settings above. It must leave no transaction open,
  /// and autocommit on.
  ///
  /// After each use of a connection, the pool restores the settings to their values after `on_connect`:
  /// - MariaDB and MySQL with session tracking: all session variables, the role and the default database. The server
  ///   reports which variables changed. This needs MariaDB's client library in SOCI, and no proxy that drops the
  ///   reports.
  /// - MariaDB and MySQL without it: sql_mode, encoding, isolation, read-only mode, time zone, time-outs, the checks of
  ///   foreign and unique keys, sql_select_limit, a stopped clock (`timestamp`), the role and the default database.
  /// - PostgreSQL: search_path, session_authorization and role, client_encoding, default isolation and read-only mode,
  ///   time-outs, synchronous_commit, standard_conforming_strings, row_security, session_replication_role, TimeZone and
  ///   DateStyle.
  /// - SQLite: the busy time-out, foreign_keys, synchronous and query_only.
  ///
  /// Other settings stay as the last user left them.
  std::function<void(soci::session&)> on_connect = {};
};

TXINBOX_API_END
}  // namespace txinbox
