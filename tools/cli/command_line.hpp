#pragma once

#include "cli/subcommands.hpp"

namespace txinbox::cli {

/// The command with all its subcommands. What is chosen sets `run`.
void add_all(Command app, Run& run);

}  // namespace txinbox::cli
