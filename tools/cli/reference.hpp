#pragma once

#include <string>

namespace CLI {
class App;
}

namespace txinbox::cli {

// What is made of the command's own help, so that it cannot differ from it.

/// The page for man, in roff.
std::string man_page(const CLI::App& app);

/// Completion for bash; in zsh after bashcompinit.
std::string bash_completion(const CLI::App& app);

/// Completion for fish.
std::string fish_completion(const CLI::App& app);

}  // namespace txinbox::cli
