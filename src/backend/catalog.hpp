#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/finding.hpp>
#include <txinbox/version.hpp>

#include "backend/problem.hpp"
#include "backend/query.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// How a connection reaches its server.
struct Transport {
  bool leaves_host = false;  ///< Over TCP, to an address that is not the loopback's.
  std::string encryption;    ///< "TLSv1.3, TLS_AES_256_GCM_SHA384"; empty without encryption.
};

/// What the schema, the server and the tables look like on one connection: for migrate, verify,
/// doctor, status, show and forget. Not on the path of a message.
class Catalog {
 public:
  virtual ~Catalog() = default;
  Catalog(const Catalog&) = delete;
  Catalog& operator=(const Catalog&) = delete;

  /// The schema (MySQL: database) in which `table` is found, empty when it is not.
  virtual std::string find_schema(std::string_view table) = 0;

  /// Differences between the tables in `schema` and the migrations: all of severity error, except
  /// for a missing retention index, which is a warning.
  virtual std::vector<Problem> check_tables(const std::string& schema) = 0;

  /// What is not durable or can hold keys for long: notes and warnings.
  virtual std::vector<Finding> check_server() = 0;

  virtual std::string server_version() = 0;

  /// Runs one SELECT.
  virtual std::vector<Row> read(const std::string& sql, std::size_t columns) = 0;

  /// How the connection reaches its server.
  virtual Transport transport() { return {}; }

  /// The size of the consumed-message table with its indexes, 0 where it cannot be told.
  virtual std::int64_t table_bytes(const std::string& schema) = 0;

  /// Keeps other `migrate` calls out, and opens a transaction where DDL has one.
  virtual void begin_migrations() = 0;

  /// Runs one migration, or the part of it that an interrupted one has left.
  virtual void apply(std::string_view sql) = 0;

  /// Commits what was applied and lets others in.
  virtual void end_migrations() = 0;

  /// Undoes what was applied, where DDL has a transaction, and lets others in.
  virtual void abandon_migrations() noexcept = 0;

 protected:
  Catalog() = default;
};

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
