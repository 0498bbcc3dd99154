#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/catalog.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

std::unique_ptr<Catalog> make_postgresql_catalog(soci::session& sql);

// tables.cpp and server.cpp hold parts of it.
std::vector<Problem> check_postgresql_tables(soci::session& sql, const std::string& schema);
std::vector<Finding> check_postgresql_server(soci::session& sql);

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
