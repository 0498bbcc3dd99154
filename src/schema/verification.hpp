#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backend/catalog.hpp"
#include "backend/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// What the tables look like.
struct SchemaReport {
  std::string schema;  ///< Where the consumed messages are; empty when they are nowhere.
  int version = 0;     ///< The newest that is recorded; 0 when none is, or it cannot be read.
  std::vector<backend::Problem> problems;
};

/// Compares the tables with the migrations of `database`. A handful of quick queries.
SchemaReport examine(backend::Catalog& catalog, std::string_view database);

/// Throws one `Error` that lists all problems, unless none is of severity error.
void throw_on_errors(const std::vector<backend::Problem>& problems);

/// Throws as `verify` does; returns the schema that the tables were found in. Once per connection,
/// before its first claim.
std::string verify_for_consuming(soci::session& sql);

/// The schema of the tables; throws schema_missing where there are none.
std::string schema_of_tables(backend::Catalog& catalog);

/// The newest version that this library brings.
int newest_version(std::string_view database);

/// Whether a schema that asks for `oldest_library` or newer can be used by this one.
bool supports(std::string_view oldest_library);

/// Errors: `Error` transaction_open.
void refuse_open_transaction(backend::Session& session);

/// Refuses a session that is inside a transaction, and leaves none open: with autocommit off, MySQL
/// opens one for each query.
class OutsideTransaction {
 public:
  explicit OutsideTransaction(soci::session& sql);
  ~OutsideTransaction();
  OutsideTransaction(const OutsideTransaction&) = delete;
  OutsideTransaction& operator=(const OutsideTransaction&) = delete;

 private:
  soci::session& sql_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
