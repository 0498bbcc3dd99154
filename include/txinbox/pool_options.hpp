#pragma once

#include <chrono>
#include <cstddef>
#include <functional>

#include <txinbox/version.hpp>

namespace soci {
class session;
}

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

/// How a pool connects and what its sessions may wait for. Every time-out is at least 1 ms and at
/// most 24 days: nothing of txinbox's waits forever, also on a network that has fallen silent: a connection on which
/// the server says nothing for `statement_timeout` or `lock_timeout` and 5 s more is given up. On MariaDB and MySQL
/// that holds for a handler's statements as well; on PostgreSQL docs/reference/blocking.md names the exception. Servers
/// count some time-outs in whole seconds; those are rounded up.
struct PoolOptions {
  /// The most connections that are open at once, at least 1. They are opened as they are needed.
  std::size_t connections = 4;

  /// How long `acquire` waits for a free connection.
  std::chrono::milliseconds acquire_timeout{30'000};

  /// How long one attempt to connect may take.
  std::chrono::milliseconds connect_timeout{10'000};

  /// How long a statement waits for a row lock, a table lock or (SQLite) the writer. It is also how
  /// long a second delivery of a key waits for the first to end.
  std::chrono::milliseconds lock_timeout{10'000};

  /// How long one statement may run. MySQL limits only SELECT; the connection's read time-out, which
  /// is a little longer, ends the rest. SQLite has none.
  std::chrono::milliseconds statement_timeout{30'000};

  /// How long the server keeps a transaction open whose client is silent: a consumer whose host has
  /// vanished frees its keys after this. A handler that computes longer than this between two
  /// statements loses its transaction. MySQL (not MariaDB) closes idle connections after it as well.
  std::chrono::milliseconds idle_transaction_timeout{300'000};

  /// Called on each new session, also after a reconnect, after the settings above were made. After each use a
  /// connection comes back to what it set. On MariaDB and MySQL these are all session variables and the role; the
  /// server tells which were changed (session tracking; a proxy must pass it on, and SOCI must use MariaDB's
  /// client library: otherwise only sql_mode, encoding, isolation, time zone, time-outs and the clock come back). On
  /// PostgreSQL and SQLite they are the schema, role, encoding, isolation, time zone, time-outs and
  /// session_replication_role; other settings stay as the last user left them. It must leave no transaction open,
  /// and autocommit on.
  std::function<void(soci::session&)> on_connect = {};
};

TXINBOX_NAMESPACE_END
}  // namespace txinbox
