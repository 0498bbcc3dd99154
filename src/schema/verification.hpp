#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/catalog.hpp"
#include "backend/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The state of the tables.
struct SchemaReport {
  std::string schema;  ///< The schema of the consumed-message table; empty if it was not found.
  int version = 0;     ///< The newest recorded version; 0 if there is none, or if it cannot be read.
  std::vector<backend::Problem> problems;

  /// Whether the tables of V2, and those of V3, are there without a problem.
  bool has_outbox() const;
  bool has_operations() const;
};

/// Compares the tables with the migrations of `database`. It runs a few quick queries.
SchemaReport examine(backend::Catalog& catalog, std::string_view database);

/// Finds tables of the outbox without the rows that the migration inserts. On MariaDB and MySQL, a migration that is
/// killed leaves them so, and so does a copy of the schema without its content. Then no relay publishes, or no handler
/// can add a message. Finds nothing if the tables are not those of the report, or if the user may not read them.
std::vector<backend::Problem> missing_outbox_rows(backend::Catalog& catalog, std::string_view database,
                                                  const SchemaReport& report);

/// Verifies the tables and the settings, and returns the schema of the tables.
///
/// Call it before the first claim on a connection.
///
/// Errors: as `verify`.
std::string verify_for_consuming(const backend::ConnectionPtr& connection);

/// Returns the schema of the consumed-message table, and verifies that it has these other tables.
///
/// Errors: `Error` schema_missing.
std::string schema_of_tables(backend::Catalog& catalog, std::span<const std::string_view> others = {});

/// Refuses a connection to all shards of a sharded database. Each shard has an outbox and a schema of its own.
///
/// Errors: `Error` unsafe_connection. The text has the names of the databases to connect to.
void refuse_all_shards(const backend::ConnectionPtr& connection);

/// Refuses a connection to one shard of a sharded database: for work whose rows lie in the first shard.
///
/// Errors: `Error` unsafe_connection.
void refuse_one_shard(const backend::ConnectionPtr& connection);

/// Refuses a connection on which a claim could take effect twice, or without its rows.
///
/// Call it after `verify_for_consuming`, before the first claim on a connection.
///
/// Errors: `Error` unsafe_connection.
void verify_claims(const backend::ConnectionPtr& connection);

/// Returns the newest schema version that this library contains.
int newest_version(std::string_view database);

/// Whether this library can use a schema that needs the version `oldest_library` or a newer one.
bool supports(std::string_view oldest_library);

/// At its end, ends the transaction that the queries since its begin have opened, if they have opened one. With
/// autocommit off, MySQL opens a transaction for each query.
class NoNewTransaction {
 public:
  explicit NoNewTransaction(backend::ConnectionPtr connection);
  ~NoNewTransaction();
  NoNewTransaction(const NoNewTransaction&) = delete;
  NoNewTransaction& operator=(const NoNewTransaction&) = delete;

  bool was_open() const noexcept { return was_open_; }

 private:
  const backend::ConnectionPtr connection_;
  const bool was_open_;
};

/// Refuses a session that is inside a transaction, and leaves no transaction open at its end.
class OutsideTransaction {
 public:
  explicit OutsideTransaction(const backend::ConnectionPtr& connection);

 private:
  const NoNewTransaction no_new_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
