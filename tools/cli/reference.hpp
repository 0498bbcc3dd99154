#pragma once

#include <string>

#include "console/command_description.hpp"

namespace txinbox::cli {

// What is made of the command's own help, so that it cannot differ from it.

/// The page for man, in roff.
std::string man_page(const CommandDescription& command);

/// Completion for bash; in zsh after bashcompinit.
std::string bash_completion(const CommandDescription& command);

/// Completion for fish.
std::string fish_completion(const CommandDescription& command);

}  // namespace txinbox::cli
