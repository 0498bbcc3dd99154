#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <txinbox/failed_messages.hpp>

#include "console/database_option.hpp"

namespace txinbox::cli {

/// What the subcommands of `failed` take. Which failed messages are meant: one, by its key, or those that
/// the filters choose.
struct FailedOptions {
  DatabaseOption database;
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

  /// For the list.
  void add_list_to(Command command);

  /// For what changes messages, which are in one of `states`.
  void add_change_to(Command command, const std::vector<std::string>& states);

  /// For the list: every message that is not consumed or discarded, unless told otherwise.
  FailedFilter filter() const;

  /// Errors: `UsageError` where it is not said which messages are meant. `command`: for its text.
  void check_choice(const std::string& command) const;

  bool has_file() const { return !keys_from.empty(); }

  /// The same for one key of the file.
  FailedOptions with_key(const std::string& one) const;

 private:
  void add_to(Command command);
};

/// The state of that name; none for an empty one.
std::optional<FailedState> failed_state(const std::string& name);

}  // namespace txinbox::cli
