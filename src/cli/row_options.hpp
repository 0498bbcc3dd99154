#pragma once

#include <string>

#include "database_option.hpp"

namespace txinbox::cli {

/// What a subcommand about one row takes: the database, the consumer and the business key.
struct RowOptions {
  DatabaseOption database;
  std::string consumer;
  std::string key;
  bool json = false;

  void add_to(CLI::App& command);
};

/// Tells, on standard error, that the row is not there. Returns the exit status for that.
int no_such_row();

}  // namespace txinbox::cli
