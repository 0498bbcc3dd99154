#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <txinbox/failed_messages.hpp>

#include "cli/operator_options.hpp"
#include "console/database_option.hpp"

namespace txinbox::cli {

/// The options of the subcommands of `failed`. They choose one message by its key, or all messages that the filters
/// choose.
struct FailedOptions {
  DatabaseOption database;
  OperatorOptions by;
  std::string consumer;
  std::string key;
  std::string keys_from;
  std::string error_class;
  std::string state;
  std::string older_than;
  std::size_t limit = 100;
  bool payload = false;
  bool all = false;
  bool json = false;

  /// Adds the options of `failed list`.
  void add_list_to(Command command);

  /// Adds the options of the subcommands that change messages in one of `states`.
  void add_change_to(Command command, const std::vector<std::string>& states);

  /// The filter for the list. By default, it chooses every message that is not consumed and not discarded.
  FailedFilter filter() const;

  /// Errors: `UsageError` if the options do not say which messages to change. `command`: named in the error's text.
  void check_choice(const std::string& command) const;

  bool has_file() const { return !keys_from.empty(); }

  /// The same for one key of the file.
  FailedOptions with_key(const std::string& one) const;

 private:
  void add_to(Command command);
};

/// The state with that name; nothing for an empty name.
std::optional<FailedState> failed_state(const std::string& name);

/// `failed list` (failed_list.cpp). Returns the exit status.
int run_failed_list(const FailedOptions& options);

/// `failed retry` and `failed discard` (failed_change.cpp). Each returns the exit status: 1 if no message was changed.
int run_failed_retry(const FailedOptions& options);
int run_failed_discard(const FailedOptions& options);

}  // namespace txinbox::cli
