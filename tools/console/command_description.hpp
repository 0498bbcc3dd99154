#pragma once

#include <string>
#include <vector>

namespace txinbox::cli {

/// What the help says of an option or of an argument.
struct OptionDescription {
  std::vector<std::string> long_names;   ///< Without dashes; an argument has no names.
  std::vector<std::string> short_names;  ///< Without the dash.
  std::string description;
  std::string type;  ///< "NAME", or "STATE:{failing,parked}".
  std::string text;  ///< Of an argument: "[FILE]".
  std::string default_value;
  bool takes_value = false;
};

struct CommandDescription {
  std::string name;
  std::string description;
  std::string footer;
  std::vector<OptionDescription> options;  ///< With those of its groups.
  std::vector<CommandDescription> subcommands;
};

}  // namespace txinbox::cli
