#pragma once

#include <string>

#include "console/command_description.hpp"

namespace txinbox::cli {

// Documents that are generated from the command's own help, so that they always agree with it.

/// The man page, in roff.
std::string man_page(const CommandDescription& command);

/// Completion for bash. It also works in zsh after bashcompinit.
std::string bash_completion(const CommandDescription& command);

/// Completion for fish.
std::string fish_completion(const CommandDescription& command);

}  // namespace txinbox::cli
