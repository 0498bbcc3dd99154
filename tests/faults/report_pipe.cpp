#include "faults/report_pipe.hpp"

#include <unistd.h>

#include <array>
#include <sstream>
#include <stdexcept>

namespace txinbox::test {

ReportPipe::ReportPipe() {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw std::runtime_error("the report pipe cannot be created");
  read_end_ = ends[0];
  write_end_ = ends[1];
}

ReportPipe::~ReportPipe() {
  close(read_end_);
  if (write_end_ >= 0) close(write_end_);
}

void ReportPipe::write(const std::string& line) const {
  const std::string text = line + "\n";
  if (::write(write_end_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    throw std::runtime_error("a line cannot be written to the report pipe");
  }
}

std::vector<std::string> ReportPipe::lines() {
  close(write_end_);
  write_end_ = -1;
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t size = read(read_end_, buffer.data(), buffer.size());
    if (size < 0) throw std::runtime_error("the child's report cannot be read");
    if (size == 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(size));
  }
  std::vector<std::string> all;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) all.push_back(line);
  return all;
}

}  // namespace txinbox::test
