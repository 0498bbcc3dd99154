#pragma once

#include <string>
#include <vector>

#include "cli/key_file.hpp"
#include "console/database_option.hpp"

namespace txinbox::cli {

/// What a subcommand about single rows takes: the database, the consumer, and a business key or a file of them.
struct RowOptions {
  DatabaseOption database;
  std::string consumer;
  std::string key;
  std::string keys_from;
  bool json = false;

  void add_to(Command command);

  bool has_file() const { return !keys_from.empty(); }

  /// The keys of the file, or the one that was given.
  ///
  /// Errors: `UsageError` where there is neither; as `read_keys`. `command`: for its text.
  std::vector<FileKey> keys(const std::string& command) const;

  /// Tells, on standard error, that the row of this key is not there.
  void say_no_row(const FileKey& key) const;
};

}  // namespace txinbox::cli
