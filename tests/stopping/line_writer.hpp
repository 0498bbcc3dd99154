#pragma once

#include <mutex>
#include <string>

#include <unistd.h>

namespace txinbox::test {

/// Writes lines to standard output, from any thread. When `write` returns, the line is written.
class LineWriter {
 public:
  void write(const std::string& line) {
    const std::string text = line + "\n";
    const std::lock_guard lock(mutex_);
    for (std::size_t at = 0; at < text.size();) {
      const auto count = ::write(STDOUT_FILENO, text.data() + at, text.size() - at);
      if (count <= 0) ::_exit(3);
      at += static_cast<std::size_t>(count);
    }
  }

 private:
  std::mutex mutex_;
};

}  // namespace txinbox::test
