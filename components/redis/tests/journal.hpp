#pragma once

#include <string>

#include <fcntl.h>
#include <unistd.h>

namespace txinbox::test {

/// A file to which several processes append lines. The order of the lines is the order of the events.
class Journal {
 public:
  explicit Journal(const std::string& file)
      : descriptor_(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {}
  ~Journal() { ::close(descriptor_); }
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  /// Appends a line such as "start 7 1234": the event, the key and the process. Returns whether the whole line was
  /// written.
  bool add(const std::string& what, int key, int process) const {
    const std::string line = what + " " + std::to_string(key) + " " + std::to_string(process) + "\n";
    return ::write(descriptor_, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  }

 private:
  int descriptor_;
};

}  // namespace txinbox::test
