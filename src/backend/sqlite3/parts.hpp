#pragma once

// The parts of this database that database.cpp puts together.

#include <memory>
#include <vector>

#include "backend/catalog.hpp"
#include "backend/dialect.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// The syntax of portable statements.
std::unique_ptr<Dialect> make_sqlite3_dialect();

std::unique_ptr<Catalog> make_sqlite3_catalog(ConnectionPtr);

// tables.cpp and server.cpp define these functions.
std::vector<Problem> check_sqlite3_tables(const NativeConnection&);
std::vector<Finding> check_sqlite3_server(const NativeConnection&);

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
