#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "console/command.hpp"

namespace txinbox::cli {

/// A business key, and the line of the file that it stands in.
struct FileKey {
  std::string key;
  std::size_t line;  // from 1
};

/// The most keys of one file.
inline constexpr std::size_t max_file_keys = 1'000'000;

/// Adds `--keys-from FILE`.
void add_keys_from(Command command, std::string& path);

/// The keys of a file, or of standard input ("-"): one a line, ended by LF or CRLF. Empty lines and a byte order mark
/// are skipped, a key that came before as well. It is read whole before anything is done with it.
///
/// Errors: `UsageError` that names the line, for one that is no business key; for more than `max_file_keys`; for a
///         file without a key, or one that cannot be read.
std::vector<FileKey> read_keys(const std::string& path);

/// To standard error, before the error itself: the keys before this one are done.
void say_where_it_stopped(const FileKey& key);

/// Calls `change` with each key. Where it throws, says where that was.
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
