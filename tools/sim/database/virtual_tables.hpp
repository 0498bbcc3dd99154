#pragma once

// SQLite evaluates the SQL of a simulated session. The tables that it sees are virtual: their rows are those that the
// session sees in the simulated server.

#include <cstddef>
#include <exception>
#include <vector>

#include <sqlite3.h>

#include "sim/database/store.hpp"

namespace txinbox::sim {

/// The state that the virtual tables of one connection need. It must outlive the connection.
struct View {
  Store* store;
  Transaction* transaction = nullptr;  ///< Null: the statement sees what is committed.
  std::size_t changed = 0;             ///< How many rows statements have changed.
  std::int64_t marked = 0;             ///< The last argument of sim_mark().
  std::exception_ptr error = {};       ///< Why a statement has failed, if it was not SQLite that refused it.
};

/// Adds the tables to the connection, and the functions of `SimDialect`.
void add_virtual_tables(::sqlite3*, View&, const std::vector<TableDefinition>&);

}  // namespace txinbox::sim
