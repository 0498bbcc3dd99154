#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "console/exit_status.hpp"

namespace CLI {
class App;
}

namespace txinbox::cli {

/// Ends the help of a subcommand with examples and with what its exit statuses mean.
void add_help(CLI::App& command, std::initializer_list<std::string_view> examples,
              std::initializer_list<std::pair<ExitStatus, std::string_view>> statuses);

// What is the same for most subcommands.
inline constexpr std::pair<ExitStatus, std::string_view> usage_status{exit_usage, "the command line is wrong"};
inline constexpr std::pair<ExitStatus, std::string_view> database_status{exit_database, "the database cannot be used"};
inline constexpr std::pair<ExitStatus, std::string_view> output_status{exit_stopped,
                                                                       "nobody reads standard output any more"};

}  // namespace txinbox::cli
