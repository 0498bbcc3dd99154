#pragma once

#include "torture/torture.hpp"
#include "torture/worker.hpp"

namespace CLI {
class App;
}

namespace txinbox::torture {

/// The values of the command line.
struct Arguments {
  TortureOptions torture;
  bool removes_leftovers = false;
  WorkerOptions worker;  ///< Number 0: this process is not a worker.
};

void add_options(CLI::App& app, Arguments& arguments);

/// Checks and completes the parsed options: it chooses a seed if none was given.
///
/// Errors: `CLI::ParseError` for options that exclude each other.
void check_options(const CLI::App& app, Arguments& arguments);

}  // namespace txinbox::torture
