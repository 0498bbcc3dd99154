#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace txinbox::cli {

/// A program that runs beside the command. It reads lines from its standard input, and answers with lines on its
/// standard output. Its standard error is that of the command.
class Program {
 public:
  /// Starts `sh -c command` in a process group of its own, so that a signal of the terminal does not reach it. The
  /// program gets no open file besides the three standard ones, and no environment variable whose name begins with
  /// TXINBOX_, because these can hold passwords.
  ///
  /// Errors: std::system_error.
  explicit Program(const std::string& command);

  /// Ends the program, and gives it five seconds.
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// The answer to an input.
  struct Answer {
    std::vector<std::string> lines;
    std::string error = {};  ///< Why there are not more lines. Empty if there are as many as were asked for.
  };

  /// Writes `input`, and reads `lines` lines of the answer. Reads fewer if the program ends too early, takes longer
  /// than `timeout`, or writes a line with more than 64 MiB. The program must not be used any more then.
  ///
  /// Errors: std::system_error.
  Answer exchange(std::string_view input, std::size_t lines, std::chrono::milliseconds timeout);

  /// Closes the program's input, waits for its end at most for `grace`, and then kills it with the processes that it
  /// has started. A second call does nothing.
  void end(std::chrono::milliseconds grace) noexcept;

 private:
  void take_lines(std::vector<std::string>& lines, std::size_t most);
  std::string send_and_receive(std::string_view& input, std::chrono::milliseconds longest);

  pid_t pid_ = -1;  ///< The program's process. -1 after its end.
  int input_ = -1;
  int output_ = -1;
  std::string unread_;
};

}  // namespace txinbox::cli
