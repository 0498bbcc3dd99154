#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace txinbox::cli {

/// Reads a file or pipe line by line. Its memory is bounded. A signal can interrupt it.
class LineReader {
 public:
  enum class Status {
    line,
    too_long,  ///< The line is longer than the limit. Most of it was skipped.
    none,      ///< No complete line has arrived yet.
    end,
    stopped,  ///< `wake_fd` became readable.
    error,    ///< See `error_number`.
  };
  enum class Wait { yes, no };

  /// `wake_fd`: while it is readable, nothing more is read; -1: none. `limit`: the length of a line in bytes, without
  /// its end. Neither descriptor is closed by this object.
  LineReader(int fd, int wake_fd, std::size_t limit) : fd_(fd), wake_fd_(wake_fd), limit_(limit) {}
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  /// Reads the next line. It removes LF or CRLF, and a byte order mark from the first line. A last line without LF is a
  /// line, too. `line` is valid until the next call. Of a line that is too long, it has the first bytes.
  ///
  /// Blocking: with `Wait::no`, it takes the data that has arrived, and keeps an incomplete line for the next call.
  Status next(std::string_view& line, Wait wait = Wait::yes);

  std::size_t number() const { return number_; }                     ///< Of the last line that `next` returned, from 1.
  unsigned long long bytes() const { return read_ - rest_.size(); }  ///< How many bytes were taken so far.
  int error_number() const { return error_number_; }

 private:
  Status fill(Wait wait);
  void keep(std::string_view piece);
  Status finish(std::string_view whole, std::string_view& line);

  int fd_;
  int wake_fd_;
  std::size_t limit_;
  std::size_t number_ = 0;
  unsigned long long read_ = 0;
  int error_number_ = 0;
  bool at_end_ = false;
  std::string buffer_;
  std::string_view rest_;  // the unread part of the buffer

  // The begin of a line that is longer than the buffer.
  std::string begin_;
  bool begun_ = false;
  bool too_long_ = false;
};

}  // namespace txinbox::cli
