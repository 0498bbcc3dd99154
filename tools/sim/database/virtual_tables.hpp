#pragma once

// SQLite evaluates the SQL of a simulated session. The tables that it sees are virtual: their rows are those that the
// session sees in the simulated server.

#include <cstddef>
#include <exception>
#include <string>
#include <vector>

#include <sqlite3.h>

#include "sim/database/store.hpp"

namespace txinbox::sim {

/// What the virtual tables of one connection need. It must outlive the connection.
struct View {
  Store* store;
  Transaction* transaction = nullptr;  ///< Null: the statement sees what is committed.
  std::size_t changed = 0;             ///< How many rows statements have changed.
  std::int64_t marked = 0;             ///< The last argument of sim_mark().
  std::exception_ptr error = {};       ///< Why a statement has failed, if it was not SQLite that refused it.
};

/// Adds the tables to the connection, and the functions of `SimDialect`.
void add_virtual_tables(::sqlite3*, View&, const std::vector<TableDefinition>&);

/// Reads the tables that the migrations for SQLite make, and the rows that they put into them.
struct Migrated {
  std::vector<TableDefinition> tables;
  std::vector<std::pair<std::string, Values>> rows;  ///< The name of the table, and the row.
};
Migrated read_migrated(::sqlite3*);

Value value_of(::sqlite3_value*);
Value column_of(::sqlite3_stmt*, int column);

}  // namespace txinbox::sim
