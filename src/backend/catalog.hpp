#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/finding.hpp>
#include <txinbox/version.hpp>

#include "backend/query.hpp"
#include "backend/report.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// How a connection reaches its server.
struct Transport {
  bool leaves_host = false;  ///< The connection uses TCP to an address that is not a loopback address.
  std::string encryption;    ///< For example "TLSv1.3, TLS_AES_256_GCM_SHA384". Empty if the connection is not
                             ///< encrypted.
};

/// A client that reads changes from the log of the database: Debezium, or a replica.
struct LogReader {
  std::string name;  ///< Such as "the replication slot debezium".
  bool connected;    ///< Whether it reads now.
};

/// The statistics of the database about a table. None: there are none.
struct TableEstimate {
  std::optional<std::int64_t> rows = {};
  std::optional<std::int64_t> bytes = {};  ///< With the indexes.
};

/// Examines the schema, the server and the tables over one connection. `migrate`, `verify`, `doctor` and the commands
/// that read use it. Deliveries do not use it, except for the check at the first use of a session.
class Catalog {
 public:
  virtual ~Catalog() = default;
  Catalog(const Catalog&) = delete;
  Catalog& operator=(const Catalog&) = delete;

  /// Returns the schema (MySQL: database) that contains `table`. Empty if no schema contains it.
  virtual std::string find_schema(std::string_view table) = 0;

  /// Returns the differences between the tables in `schema` and the migrations. Each has the severity error, except a
  /// missing retention index, which is a warning.
  virtual std::vector<Problem> check_tables(const std::string& schema) = 0;

  /// Returns whether `table` can exist in `schema` although this user does not see it.
  virtual bool may_hide(const std::string& /*schema*/, std::string_view /*table*/) { return false; }

  /// Returns whether this user may read a table that `find_schema` has found, if a denied read would abort the
  /// transaction. Otherwise true.
  virtual bool may_read(std::string_view /*table*/) { return true; }

  /// Returns notes and warnings: the settings that make a commit less than durable, and what can keep keys locked for
  /// long.
  virtual std::vector<Finding> check_server() = 0;

  /// Returns warnings about the numbers that the database gives the rows of the outbox in `schema`: they must be new,
  /// and must grow.
  virtual std::vector<Finding> check_outbox_numbers(const std::string& /*schema*/) { return {}; }

  /// Returns who reads the changes of the outbox's messages in `schema` from the database's log, as Debezium does. None
  /// if nobody does, or if this user may not know.
  virtual std::optional<LogReader> find_log_reader(const std::string& /*schema*/) { return std::nullopt; }

  /// Returns the names of the databases to connect to, one for each shard, if the database is sharded and statements of
  /// this connection can reach each shard. Otherwise returns none.
  virtual std::vector<std::string> shards() { return {}; }

  /// Returns the name of the whole database if this connection reaches only one of its shards. Otherwise returns "".
  virtual std::string database_of_shard() { return {}; }

  /// Returns why the claims of this connection could be unsafe, although its tables and its settings are right.
  virtual std::vector<Problem> check_claims() { return {}; }

  virtual std::string server_version() = 0;

  /// Runs one SELECT.
  virtual std::vector<Row> read(const std::string& sql, std::size_t columns) = 0;

  /// Returns how the connection reaches its server.
  virtual Transport transport() { return {}; }

  /// Returns the size of the consumed-message table with its indexes. 0 if the database cannot tell.
  virtual std::int64_t table_bytes(const std::string& schema) = 0;

  /// Returns the size of the consumed-message table as the database's statistics have it. It reads no row.
  virtual TableEstimate estimate(const std::string& /*schema*/) { return {}; }

  /// Whether the consumed-message table has the index on leases, `lease_index`.
  virtual bool has_lease_index(const std::string& /*schema*/) { return false; }

  /// Takes the lock that makes other `migrate` calls wait. Opens a transaction if DDL is transactional.
  virtual void begin_migrations() = 0;

  /// Runs one migration. The same migration may run again after an interruption.
  virtual void apply(std::string_view sql) = 0;

  /// Commits the applied migrations, and releases the lock.
  virtual void end_migrations() = 0;

  /// Rolls the applied migrations back if DDL is transactional, and releases the lock.
  virtual void abandon_migrations() noexcept = 0;

 protected:
  Catalog() = default;
};

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
