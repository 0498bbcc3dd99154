#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/database/store.hpp"

namespace txinbox::sim {

/// The tables of a simulated database: those that the migrations for SQLite make, and `effect` for the handlers. The
/// rows are those that the migrations put into them.
struct Migrated {
  std::vector<TableDefinition> tables;
  std::vector<std::pair<std::string, Values>> rows;  ///< The name of the table, and the row.
};

Migrated make_migrated();

}  // namespace txinbox::sim
