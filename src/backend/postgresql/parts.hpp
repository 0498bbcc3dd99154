#pragma once

// The parts of this database that database.cpp puts together.

#include <memory>
#include <string>
#include <vector>

#include "backend/catalog.hpp"
#include "backend/dialect.hpp"
#include "backend/native_connection.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// The syntax of portable statements.
std::unique_ptr<Dialect> make_postgresql_dialect(std::string schema);

std::unique_ptr<Catalog> make_postgresql_catalog(ConnectionPtr);

// tables.cpp and server.cpp define these functions.
std::vector<Problem> check_postgresql_tables(const NativeConnection&, const std::string& schema);
std::vector<Finding> check_postgresql_server(const NativeConnection&);
std::vector<Finding> check_postgresql_outbox_numbers(const NativeConnection&, const std::string& schema);

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
