#pragma once

#include "torture/torture.hpp"
#include "torture/worker.hpp"

namespace CLI {
class App;
}

namespace txinbox::torture {

/// What the command line says.
struct Arguments {
  TortureOptions torture;
  bool removes_leftovers = false;
  WorkerOptions worker;  ///< Number 0: this is no worker process.
};

void add_options(CLI::App& app, Arguments& arguments);

/// Completes what was parsed: a seed where none was given.
///
/// Errors: `CLI::ParseError` for options that do not go together.
void check_options(const CLI::App& app, Arguments& arguments);

}  // namespace txinbox::torture
