#include "console/line_reader.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include <poll.h>
#include <unistd.h>

namespace txinbox::cli {
namespace {

constexpr std::size_t buffer_size = 65'536;

// How much memory a line may leave for the next line.
constexpr std::size_t kept_capacity = 1024UL * 1024;

// How many bytes of a line that is too long are kept.
constexpr std::size_t begin_of_too_long = 64;

}  // namespace

// Returns `line` if rest_ has data.
LineReader::Status LineReader::fill(Wait wait) {
  if (at_end_) return Status::end;
  buffer_.resize(buffer_size);
  while (true) {
    std::array<pollfd, 2> waits{{{fd_, POLLIN, 0}, {wake_fd_, POLLIN, 0}}};  // poll ignores fd -1
    const int ready = ::poll(waits.data(), waits.size(), wait == Wait::yes ? -1 : 0);
    if (ready == 0) return Status::none;
    if (ready < 0) {
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
    read_ += static_cast<unsigned long long>(count);
    rest_ = std::string_view(buffer_).substr(0, static_cast<std::size_t>(count));
    return Status::line;
  }
}

void LineReader::keep(std::string_view piece) {
  if (piece.empty()) return;
  begun_ = true;
  // Four bytes more than the limit: a byte order mark and a CR do not count.
  if (!too_long_ && begin_.size() + piece.size() > limit_ + 4) {
    too_long_ = true;
    begin_.resize(std::min(begin_.size(), begin_of_too_long));
    begin_.append(piece.substr(0, begin_of_too_long - begin_.size()));
    begin_.shrink_to_fit();
  }
  if (!too_long_) begin_ += piece;
}

LineReader::Status LineReader::finish(std::string_view whole, std::string_view& line) {
  ++number_;
  begun_ = false;
  if (whole.ends_with('\r')) whole.remove_suffix(1);
  if (number_ == 1 && whole.starts_with("\xEF\xBB\xBF")) whole.remove_prefix(3);
  const bool too_long = too_long_ || whole.size() > limit_;
  too_long_ = false;
  line = too_long ? whole.substr(0, begin_of_too_long) : whole;
  return too_long ? Status::too_long : Status::line;
}

LineReader::Status LineReader::next(std::string_view& line, Wait wait) {
  if (!begun_) {
    begin_.clear();
    if (begin_.capacity() > kept_capacity) begin_.shrink_to_fit();
  }
  while (true) {
    const auto newline = rest_.find('\n');
    const auto piece = rest_.substr(0, newline);
    if (newline != std::string_view::npos) {
      rest_.remove_prefix(newline + 1);
      if (!begun_) return finish(piece, line);
      keep(piece);
      return finish(begin_, line);
    }
    keep(piece);
    rest_ = {};
    const auto status = fill(wait);
    if (status == Status::end && begun_) return finish(begin_, line);
    if (status != Status::line) return status;
  }
}

}  // namespace txinbox::cli
