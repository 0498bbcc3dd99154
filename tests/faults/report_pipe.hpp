#pragma once

#include <string>
#include <vector>

namespace txinbox::test {

/// Lines that a child process reports to its parent before it is killed.
class ReportPipe {
 public:
  ReportPipe();
  ~ReportPipe();
  ReportPipe(const ReportPipe&) = delete;
  ReportPipe& operator=(const ReportPipe&) = delete;

  /// The child calls it. When it returns, the parent can read the line.
  void write(const std::string& line) const;

  /// The parent calls it after the child has ended. Returns all lines. They must fit into a pipe, 64 KiB.
  std::vector<std::string> lines();

 private:
  int read_end_ = -1;
  int write_end_ = -1;
};

}  // namespace txinbox::test
