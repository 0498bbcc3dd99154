#pragma once

#include "console/database_option.hpp"
#include "torture/storm.hpp"

namespace txinbox::torture {

struct TortureOptions {
  StormOptions storm;
  cli::DatabaseOption database;
  bool json = false;
};

/// Prepares the scratch tables, lets the storm rage, checks, reports, and removes what it made; but keeps
/// the evidence when something does not balance.
///
/// Errors: `cli::UsageError`, `Error` and database errors, where the storm cannot begin or its end
///         cannot be looked at.
/// @return the exit status.
int torture(const TortureOptions& options);

/// Removes what an earlier storm left.
int remove_leftovers(const TortureOptions& options);

}  // namespace txinbox::torture
