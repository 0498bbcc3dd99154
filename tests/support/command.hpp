#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <sys/types.h>

namespace txinbox::test {

/// How a run of the command ended.
struct Ended {
  int status = -1;  ///< The exit status. If a signal ended the command: minus the signal's number.
  std::string out;
  std::string err;
  long peak_memory = 0;  ///< In KiB. At least the size of this process when it started the command.

  /// The last line of standard output.
  std::string last_line() const;
};

/// A run of the real command. TXINBOX_COMMAND names its file.
class Command {
 public:
  using Arguments = std::vector<std::string>;

  /// `db` is the value of the environment variable TXINBOX_DB. If `db` is empty, the variable is not set.
  explicit Command(const Arguments& arguments, const std::string& db = "");

  /// Kills it if it still runs.
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  /// Writes to its standard input. The command may have ended.
  void write(const std::string& text);
  void close_input();

  /// Closes the reading end of its standard output.
  void close_output();

  void signal(int number) const;

  /// Waits some minutes for `text` on standard output or error. Returns whether it appeared.
  bool printed(const std::string& text);

  /// Whether `text` has appeared by now.
  bool has_printed(const std::string& text);

  /// Its standard output until now.
  std::string output();

  /// The memory that it uses now, in KiB.
  long memory() const;

  bool has_ended() const;

  /// Closes its input and waits for its end. Kills it if it does not end.
  Ended wait();

 private:
  void collect(int fd, std::string& text);

  pid_t pid_ = -1;
  int input_ = -1;
  std::mutex mutex_;
  std::condition_variable changed_;
  Ended ended_;
  int output_ = -1;
  int errors_ = -1;
  int hang_up_[2] = {-1, -1};
  std::thread reads_output_;
  std::thread reads_errors_;
};

/// Runs the command with `input` on its standard input.
Ended run(const Command::Arguments& arguments, const std::string& db = "", const std::string& input = "");

}  // namespace txinbox::test
