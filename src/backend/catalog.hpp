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

/// What the schema, the server and the tables look like on one connection, for `migrate`, `verify`, `doctor` and the
/// commands that read. No delivery of a message calls it, but for the check at a session's first use.
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

  /// Settings that make a commit less than durable, and what can keep keys locked for long: notes and warnings.
  virtual std::vector<Finding> check_server() = 0;

  virtual std::string server_version() = 0;

  /// Runs one SELECT.
  virtual std::vector<Row> read(const std::string& sql, std::size_t columns) = 0;

  /// How the connection reaches its server.
  virtual Transport transport() { return {}; }

  /// The size of the consumed-message table with its indexes; 0 if the database cannot say.
  virtual std::int64_t table_bytes(const std::string& schema) = 0;

  /// Keeps out other `migrate` calls, and opens a transaction if DDL is transactional.
  virtual void begin_migrations() = 0;

  /// Runs one migration. It may run again after an interruption.
  virtual void apply(std::string_view sql) = 0;

  /// Commits what was applied, and lets in other calls.
  virtual void end_migrations() = 0;

  /// Undoes what was applied if DDL is transactional, and lets in other calls.
  virtual void abandon_migrations() noexcept = 0;

 protected:
  Catalog() = default;
};

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
