#pragma once

// What a server can do that speaks MySQL's protocol.

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/version.hpp>

#include "backend/query.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// What the version string of a server says, which the server sends when a client connects.
struct ServerVersion {
  enum class Product { unknown, mariadb, mysql };

  Product product = Product::unknown;
  long long major = 0;
  long long minor = 0;
  long long patch = 0;

  /// Whether we test on this product, and the version is not too old.
  bool is_supported() const noexcept;

  bool operator==(const ServerVersion&) const = default;
};

/// A product is known only if all of the string is: "8.0.36-28" of Percona Server is MySQL, "8.0.11-TiDB-v7.5.0" is
/// unknown.
ServerVersion parse_server_version(std::string_view version);

/// What the server is, if it is not one on which we test; empty if it is. `handshake` is the version that it sent when
/// the client connected; `global`: the variables version, version_comment, aurora_version and wsrep_provider.
std::string unknown_product(std::string_view handshake, const Settings& global);

/// The capabilities of a server. The code asks for a capability, never for a product. The defaults are the careful set,
/// for a server that we do not know: only statements that every server of the protocol has.
struct Flavour {
  /// Whether it has every variable that is named here. Otherwise ask it, and call `keep_existing`.
  bool has_all_variables = false;

  bool compound_statements = false;  ///< BEGIN NOT ATOMIC …; …; END.
  bool procedures = false;           ///< The migration has made procedures for what compound statements would do.
  bool insert_returning = false;     ///< INSERT … ON DUPLICATE KEY UPDATE … RETURNING.
  bool set_statement = false;        ///< SET STATEMENT variable = value FOR …
  bool optimizer_hints = false;      ///< SET_VAR and NO_BNL in comments, and VALUES ROW(…).
  bool applicable_roles = false;     ///< information_schema.applicable_roles.
  bool binary_log = false;           ///< @@log_bin and @@sql_log_bin say whether a commit is durable once it is seen.

  /// A locking read that sees the last committed row. With FOR UPDATE, two redeliveries of one key can deadlock. Empty:
  /// a plain read sees it.
  std::string_view lock_existing = "FOR UPDATE";

  /// A locking read that does not wait for locked rows: "SKIP LOCKED", "NOWAIT". Empty: it waits.
  std::string_view when_locked = "";

  /// A locking read that is refused if somebody has inserted or changed the row and not yet committed. Empty: none.
  std::string_view share_without_wait = "";

  bool may_be_in_cluster = false;  ///< Its variable wsrep_provider says whether `cluster` is true.

  /// A node of a Galera cluster: a read can wait for what the other nodes have committed. With autocommit on, the node
  /// repeats a statement that another node has aborted.
  bool cluster = false;

  // Variables that servers name differently. Empty: the server has none.
  std::string_view isolation, read_only;
  std::string_view statement_seconds, statement_milliseconds;  ///< How long a statement may run.
  std::string_view idle_seconds;                               ///< How long a transaction, or a connection, may idle.
  std::string_view clock = "timestamp";                        ///< Stops the session's clock.

  /// Variables with one name everywhere that a handler can leave changed for the next one.
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

  /// What a pool restores after a handler, in this order, and sql_mode last of all.
  std::vector<std::string_view> restored() const;

  /// The careful set: keeps and names the variables that the server has.
  void keep_existing(const std::set<std::string, std::less<>>& variables);
};

/// The capabilities of that version; the careful set if it is not supported.
Flavour flavour_of(const ServerVersion&);

/// The names to ask an unknown server for.
std::vector<std::string_view> variables_to_ask_for();

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
