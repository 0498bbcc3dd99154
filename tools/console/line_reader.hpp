#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace txinbox::cli {

/// Lines of a file or pipe, in bounded memory, which a signal can interrupt.
class LineReader {
 public:
  enum class Status {
    line,
    too_long,  ///< Longer than the limit; it was skipped to its end.
    none,      ///< No whole line is there yet.
    end,
    stopped,  ///< `wake_fd` became readable.
    error,    ///< `error_number` says which.
  };
  enum class Wait { yes, no };

  /// `wake_fd`: while it is readable, nothing more is read; -1: none. `limit`: in bytes, without the
  /// line's end. Neither descriptor is closed.
  LineReader(int fd, int wake_fd, std::size_t limit) : fd_(fd), wake_fd_(wake_fd), limit_(limit) {}
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  /// The next line, without LF or CRLF, and the first one without a byte order mark. An unfinished
  /// last line counts. `line` is valid until the next call.
  ///
  /// Blocking: with `Wait::no` it takes what is there: the begin of a line is kept for the next call.
  Status next(std::string_view& line, Wait wait = Wait::yes);

  std::size_t number() const { return number_; }                     ///< Of the last line that `next` gave, from 1.
  unsigned long long bytes() const { return read_ - rest_.size(); }  ///< Taken so far.
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
  std::string_view rest_;  // of the buffer

  // A line that the buffer does not hold whole.
  std::string begin_;
  bool begun_ = false;
  bool too_long_ = false;
};

}  // namespace txinbox::cli
