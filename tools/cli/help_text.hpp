#pragma once

#include <string_view>
#include <utility>

#include "console/exit_status.hpp"

namespace txinbox::cli {

// Texts that most subcommands share.
inline constexpr std::pair<ExitStatus, std::string_view> usage_status{exit_usage, "the command line is wrong"};
inline constexpr std::pair<ExitStatus, std::string_view> database_status{exit_database, "the database cannot be used"};
inline constexpr std::pair<ExitStatus, std::string_view> output_status{exit_stopped,
                                                                       "nobody reads standard output any more"};

}  // namespace txinbox::cli
