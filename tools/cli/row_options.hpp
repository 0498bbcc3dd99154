#pragma once

#include <string>
#include <vector>

#include "cli/key_file.hpp"
#include "console/database_option.hpp"

namespace txinbox::cli {

/// The options of a subcommand for single rows: the database, the consumer, and a business key or a file of keys.
struct RowOptions {
  DatabaseOption database;
  std::string consumer;
  std::string key;
  std::string keys_from;
  bool json = false;

  void add_to(Command command);

  bool has_file() const { return !keys_from.empty(); }

  /// The keys of the file, or the one key of the command line.
  ///
  /// Errors: `UsageError` if there is neither; as `read_keys`. `command`: named in the error's text.
  std::vector<FileKey> keys(const std::string& command) const;

  /// Prints to standard error that this key has no row.
  void say_no_row(const FileKey& key) const;
};

}  // namespace txinbox::cli
