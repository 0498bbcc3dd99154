#pragma once

#include "cli/subcommands.hpp"

namespace txinbox::cli {

inline constexpr char program_name[] = "txinbox";
inline constexpr char program_help[] = "Takes each message's effect into a database exactly once";

/// The command with all its subcommands. The subcommand that the user chooses sets `run`.
void add_all(Command app, Run& run);

}  // namespace txinbox::cli
