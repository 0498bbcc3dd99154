#pragma once

#include <stdexcept>
#include <string>

#include <sqlite3.h>

#include "sim/database/value.hpp"

namespace txinbox::sim {

Value text_value(std::string);

Value value_of(::sqlite3_value*);
Value column_of(::sqlite3_stmt*, int column);

/// The values must outlive the run of the statement.
void bind(::sqlite3_stmt*, const Values&);

/// Prepares a query, and calls `take` for each row.
template <class Take>
void for_each_row(::sqlite3* connection, const std::string& sql, const Take& take) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(connection, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
    throw std::logic_error(sql + ": " + sqlite3_errmsg(connection));
  }
  while (sqlite3_step(statement) == SQLITE_ROW) take(statement);
  sqlite3_finalize(statement);
}

}  // namespace txinbox::sim
