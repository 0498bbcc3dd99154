#pragma once

// The parts of this database that database.cpp puts together.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/catalog.hpp"
#include "backend/dialect.hpp"
#include "backend/native_connection.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// The syntax of portable statements. `names_time_zone`: they contain @@time_zone.
std::unique_ptr<Dialect> make_mysql_dialect(std::string schema, bool names_time_zone = true);

/// Returns the text of a statement with these values as literals.
std::string mysql_text(const KeptStatement&, const std::string& schema, std::span<const Parameter> values);

std::unique_ptr<Catalog> make_mysql_catalog(ConnectionPtr);

/// Whether this sql_mode makes the server refuse a value that it cannot store, instead of truncating it.
bool is_strict(std::string_view sql_mode);

// tables.cpp and server.cpp define these functions.
std::vector<Problem> check_mysql_tables(const NativeConnection&);
std::vector<Finding> check_mysql_server(const NativeConnection&);

// shards.cpp defines these functions.
std::vector<std::string> mysql_shards(const NativeConnection&);
std::string database_of_mysql_shard(const NativeConnection&);
std::vector<Problem> check_claims_in_shards(const NativeConnection&);
void check_sharding(const NativeConnection&, Report&);

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
