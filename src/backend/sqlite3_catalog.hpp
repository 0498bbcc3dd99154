#pragma once

#include <memory>
#include <vector>

#include "backend/backend.hpp"

namespace txinbox::inline TXINBOX_ABI::backend {

std::unique_ptr<Catalog> make_sqlite3_catalog(soci::session& sql);

// Its parts: sqlite3_tables.cpp, sqlite3_server.cpp.
std::vector<Problem> check_sqlite3_tables(soci::session& sql);
std::vector<Problem> check_sqlite3_session(soci::session& sql);
std::vector<Finding> check_sqlite3_server(soci::session& sql);

}  // namespace txinbox::inline TXINBOX_ABI::backend
