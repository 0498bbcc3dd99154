#pragma once

#include "console/database_option.hpp"
#include "torture/storm.hpp"

namespace txinbox::torture {

struct TortureOptions {
  StormOptions storm;
  cli::DatabaseOption database;
  bool json = false;
};

/// Creates the scratch tables, runs the storm, checks, reports, and removes what it created. If something does not
/// balance, it keeps the evidence.
///
/// Errors: `cli::UsageError`, `Error` and database errors, if the storm cannot begin or its result cannot be read.
///          @return the exit status.
int torture(const TortureOptions& options);

/// Removes the tables and rows that an earlier storm left.
int remove_leftovers(const TortureOptions& options);

}  // namespace txinbox::torture
