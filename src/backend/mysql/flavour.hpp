#pragma once

// The capabilities of the servers that speak MySQL's protocol.

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "backend/query.hpp"
#include "base/private_api.hpp"

namespace txinbox {
TXINBOX_PRIVATE_API_BEGIN
namespace backend {

/// The content of a server's version string. The server sends the string when a client connects.
struct ServerVersion {
  enum class Product { unknown, mariadb, mysql };

  Product product = Product::unknown;
  long long major = 0;
  long long minor = 0;
  long long patch = 0;

  /// Whether we test this product, and the version is not too old.
  bool is_supported() const noexcept;

  bool operator==(const ServerVersion&) const = default;
};

/// Parses a version string. A product is known only if the whole string is known: "8.0.36-28" of Percona Server is
/// MySQL, "8.0.11-TiDB-v7.5.0" is unknown.
ServerVersion parse_server_version(std::string_view version);

/// Returns the name of the server's product if we do not test it. Empty if we test it. `handshake` is the version that
/// the server sent when the client connected. `global` has the variables version, version_comment, aurora_version and
/// wsrep_provider.
std::string unknown_product(std::string_view handshake, const Settings& global);

/// The capabilities of a server. The code checks for a capability, never for a product. The default values suit a
/// server that we do not know: they need only statements that every server of the protocol has.
struct Flavour {
  /// Whether the server has every variable that is named here. If not, ask the server, and call `keep_existing`.
  bool has_all_variables = false;

  bool compound_statements = false;  ///< BEGIN NOT ATOMIC …; …; END.
  bool procedures = false;           ///< The migration has created procedures that do the work of compound statements.
  bool insert_returning = false;     ///< INSERT … ON DUPLICATE KEY UPDATE … RETURNING.
  bool set_statement = false;        ///< SET STATEMENT variable = value FOR …
  bool optimizer_hints = false;      ///< SET_VAR and NO_BNL in comments, and VALUES ROW(…).
  bool applicable_roles = false;     ///< information_schema.applicable_roles.
  bool time_zone_in_statements = false;  ///< A prepared statement may contain @@time_zone. Vitess makes a parameter of
                                         ///< it, and sometimes does not find the parameter.
  bool binary_log = false;               ///< @@log_bin and @@sql_log_bin show whether a commit is durable once it is
                                         ///< visible.

  /// The table of all sessions, with USER, HOST and COMMAND. Empty if it is not known. MySQL refuses to read its older
  /// table while any session runs a statement that is not UTF-8.
  std::string_view sessions = "";

  /// SQL for whether the session writes its commits to a binary log. Then a commit is on the disk before other sessions
  /// see it.
  std::string_view logs_commits() const { return binary_log ? "@@log_bin AND @@sql_log_bin" : "0"; }

  /// SQL for whether the server tells the client each change of the default database.
  std::string_view schema_tracker() const { return compound_statements || procedures ? "@@session_track_schema" : "0"; }

  /// The end of a read that sees the last committed row. With FOR UPDATE, two redeliveries of one key can deadlock.
  /// Empty if a plain read sees that row.
  std::string_view lock_existing = "FOR UPDATE";

  /// The end of a locking read that does not wait for locked rows: "SKIP LOCKED", "NOWAIT". Empty if the server has
  /// none: then the read waits.
  std::string_view when_locked = "";

  /// The end of a locking read that fails if another open transaction has inserted or changed the row. Empty if the
  /// server has none.
  std::string_view share_without_wait = "";

  bool may_be_in_cluster = false;  ///< The variable wsrep_provider shows whether `cluster` is true.

  /// The server is a node of a Galera cluster. A read can wait for the commits of the other nodes. With autocommit on,
  /// the node repeats a statement that another node has aborted.
  bool cluster = false;

  // Variables whose names differ between servers. Empty if the server has no such variable.
  std::string_view isolation, read_only;
  std::string_view statement_seconds, statement_milliseconds;  ///< The longest time of a statement.
  std::string_view idle_seconds;                               ///< The longest time that a transaction, or a
                                                               ///< connection, may be idle.
  std::string_view statement_microseconds, lock_microseconds, idle_microseconds;  ///< OceanBase: the same, and the
                                                                                  ///< longest wait for a lock.
  std::string_view transaction_mode;  ///< Says whether a transaction may change several shards. They commit one after
                                      ///< the other. It is never named by a list of variables.
  std::string_view clock = "timestamp";  ///< The variable that stops the session's clock.

  /// Variables that have the same name on every server. A handler can leave them changed for the next handler.
  std::vector<std::string_view> common = {"character_set_client",
                                          "character_set_connection",
                                          "collation_connection",
                                          "character_set_results",
                                          "time_zone",
                                          "foreign_key_checks",
                                          "unique_checks",
                                          "sql_select_limit",
                                          "innodb_lock_wait_timeout",
                                          "lock_wait_timeout"};

  /// Returns the variables that a pool restores after a handler, in this order. sql_mode comes last.
  std::vector<std::string_view> restored() const;

  /// For a server that we do not know: keeps only the variables that the server has, and sets their names.
  void keep_existing(const std::set<std::string, std::less<>>& variables);
};

/// Returns the capabilities of a version. If the version is not supported, returns the default values.
Flavour flavour_of(const ServerVersion&);

/// Returns the names of the variables to check on an unknown server.
std::vector<std::string_view> variables_to_ask_for();

}  // namespace backend
TXINBOX_PRIVATE_API_END
}  // namespace txinbox
