#include "line_reader.hpp"

#include <array>
#include <cerrno>

#include <poll.h>
#include <unistd.h>

namespace txinbox::cli {
namespace {

constexpr std::size_t buffer_size = 65'536;

}  // namespace

// `line` when there is something in rest_.
LineReader::Status LineReader::fill() {
  if (at_end_) return Status::end;
  buffer_.resize(buffer_size);
  while (true) {
    std::array<pollfd, 2> waits{{{fd_, POLLIN, 0}, {wake_fd_, POLLIN, 0}}};  // poll ignores fd -1
    if (::poll(waits.data(), waits.size(), -1) < 0) {
      if (errno == EINTR) continue;
      error_number_ = errno;
      return Status::error;
    }
    if (waits[1].revents != 0) return Status::stopped;
    const auto count = ::read(fd_, buffer_.data(), buffer_.size());
    if (count < 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      error_number_ = errno;
      return Status::error;
    }
    if (count == 0) {
      at_end_ = true;
      return Status::end;
    }
    rest_ = std::string_view(buffer_).substr(0, static_cast<std::size_t>(count));
    return Status::line;
  }
}

void LineReader::strip(std::string& line) const {
  if (line.ends_with('\r')) line.pop_back();
  if (number_ == 1 && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
}

LineReader::Status LineReader::next(std::string& line) {
  line.clear();
  bool too_long = false;
  bool begun = false;
  while (true) {
    if (rest_.empty()) {
      const auto status = fill();
      if (status == Status::end && begun) break;
      if (status != Status::line) return status;
    }
    if (!begun) ++number_;
    begun = true;
    const auto newline = rest_.find('\n');
    const auto piece = rest_.substr(0, newline);
    // Four bytes more than the limit: a byte order mark and a CR do not count.
    if (!too_long && line.size() + piece.size() > limit_ + 4) {
      too_long = true;
      line.clear();
      line.shrink_to_fit();
    }
    if (!too_long) line += piece;
    rest_.remove_prefix(newline == std::string_view::npos ? rest_.size() : newline + 1);
    if (newline != std::string_view::npos) break;
  }
  strip(line);
  if (too_long || line.size() > limit_) {
    line.clear();
    return Status::too_long;
  }
  return Status::line;
}

}  // namespace txinbox::cli
