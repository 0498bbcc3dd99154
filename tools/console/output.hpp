#pragma once

#include <string>
#include <string_view>

namespace txinbox::cli {

/// Call this first. If a standard descriptor is closed, the next file or connection would get its number, and the
/// program would read or write it by mistake. This opens a descriptor there, whose use fails. With glibc, it also runs
/// before the libraries are loaded, which can open descriptors, too.
void occupy_standard_descriptors();

/// Writes the whole text, and waits if the descriptor does not block. Returns 0, or the number of the error.
int write_all(int fd, std::string_view text);

/// Standard output without a buffer: written text is not lost if the process is killed.
class Output {
 public:
  /// Writes text and a line feed. Returns false, in this and all later calls, if nobody reads the output any more or
  /// the disk is full. The reason is written to standard error once. SIGPIPE must be ignored.
  bool line(std::string_view text);

  /// The same for text that already ends with a line feed.
  bool lines(std::string_view text);

  bool failed() const { return failed_; }

 private:
  bool failed_ = false;
};

/// Writes a message to standard error, line by line. Characters that could control the terminal are escaped.
void message(std::string_view text);

}  // namespace txinbox::cli
