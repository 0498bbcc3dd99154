#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "console/command.hpp"

namespace txinbox::cli {

/// A business key, and its line in the file.
struct FileKey {
  std::string key;
  std::size_t line;  // from 1; 0 for a key of the command line
};

/// The most keys of one file.
inline constexpr std::size_t max_file_keys = 1'000'000;

/// Adds `--keys-from FILE`.
void add_keys_from(Command command, std::string& path);

/// The keys of a file, or of standard input ("-"). Each line is a key and ends with LF or CRLF. Empty lines, a byte
/// order mark and repeated keys are skipped. The whole file is read before the first key is used.
///
/// Errors: `UsageError` that names the line, for an invalid business key; `UsageError` for more than `max_file_keys`,
///          for a file without a key, and for a file that cannot be read.
std::vector<FileKey> read_keys(const std::string& path);

/// For a key of a file: prints to standard error, before the error itself, that the keys before this one are done.
void say_where_it_stopped(const FileKey& key);

/// Calls `change` with each key. If `change` throws, the function prints at which key this was.
template <typename Change>
void for_each_key(const std::vector<FileKey>& keys, Change change) {
  for (const FileKey& key : keys) {
    try {
      change(key);
    } catch (...) {
      say_where_it_stopped(key);
      throw;
    }
  }
}

}  // namespace txinbox::cli
