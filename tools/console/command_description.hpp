#pragma once

#include <string>
#include <vector>

namespace txinbox::cli {

/// The text of the help about an option or a positional argument.
struct OptionDescription {
  std::vector<std::string> long_names;   ///< Without dashes. A positional argument has no names.
  std::vector<std::string> short_names;  ///< Without the dash.
  std::string description;
  std::string type;  ///< "NAME", or "STATE:{failing,parked}".
  std::string text;  ///< For a positional argument: "[FILE]".
  std::string default_value;
  bool takes_value = false;
};

struct CommandDescription {
  std::string name;
  std::string description;
  std::string footer;
  std::vector<OptionDescription> options;  ///< Including those of its groups.
  std::vector<CommandDescription> subcommands;
};

}  // namespace txinbox::cli
