#pragma once

#include <cstddef>
#include <string>

#include <unistd.h>

namespace txinbox::cli {

/// A file to read, which is closed again; empty or "-" is standard input, which stays open.
class InputFile {
 public:
  /// Errors: `UsageError` with the path, for what cannot be opened, and for a folder.
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  int fd() const { return fd_; }

 private:
  int fd_ = STDIN_FILENO;
  bool owned_ = false;
};

/// How many bytes of a file are behind the place where it is read; 0 for what is no regular file.
unsigned long long size_left(int fd);

/// All of a file, without a byte order mark.
///
/// Errors: as `InputFile`; `UsageError` where reading fails, or there is more than `limit` bytes.
std::string read_whole(const std::string& path, std::size_t limit);

}  // namespace txinbox::cli
