#pragma once

#include <string>

#include <txinbox/operator_action.hpp>

#include "console/command.hpp"

namespace txinbox::cli {

/// The options of a subcommand that makes a change as an operator.
struct OperatorOptions {
  std::string actor;
  std::string reason;

  /// Adds `--by NAME`, and an option for the reason. `name`: the option's name, where `--reason` means something else.
  /// Returns the option for the reason.
  Option add_to(Command command, const char* name = "--reason");

  /// Who makes the change: without `--by`, the system's user.
  OperatorAction action() const;
};

}  // namespace txinbox::cli
