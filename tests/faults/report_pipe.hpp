#pragma once

#include <string>
#include <vector>

namespace txinbox::test {

/// What a child process could tell before it died.
class ReportPipe {
 public:
  ReportPipe();
  ~ReportPipe();
  ReportPipe(const ReportPipe&) = delete;
  ReportPipe& operator=(const ReportPipe&) = delete;

  /// In the child. It has been told when this returns.
  void tell(const std::string& line) const;

  /// In the parent, once the child has ended: all lines. No more than a pipe holds, 64 KiB.
  std::vector<std::string> lines();

 private:
  int read_end_ = -1;
  int write_end_ = -1;
};

}  // namespace txinbox::test
