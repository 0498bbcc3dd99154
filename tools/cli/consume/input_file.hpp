#pragma once

#include <cstddef>
#include <string>

#include <unistd.h>

namespace txinbox::cli {

/// A file to read. The destructor closes it. Empty or "-" is standard input, which stays open.
class InputFile {
 public:
  /// Errors: `UsageError` with the path, if the file cannot be opened or is a folder.
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  int fd() const { return fd_; }

 private:
  int fd_ = STDIN_FILENO;
  bool owned_ = false;
};

/// How many bytes of a regular file are not read yet. 0 for other kinds of files.
unsigned long long size_left(int fd);

/// The whole content of a file, without a byte order mark.
///
/// Errors: as `InputFile`. `UsageError` if the file cannot be read, or has more than `limit` bytes.
std::string read_whole(const std::string& path, std::size_t limit);

}  // namespace txinbox::cli
