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
  int status = -1;  ///< The exit status; minus the signal's number when a signal ended it.
  std::string out;
  std::string err;
  long peak_memory = 0;  ///< In KiB; at least what this process had when it started the command.

  /// The last line of standard output.
  std::string last_line() const;
};

/// The real command (TXINBOX_COMMAND names its file), running.
class Command {
 public:
  using Arguments = std::vector<std::string>;

  /// `db`: for the environment variable TXINBOX_DB, which is unset when it is empty.
  explicit Command(const Arguments& arguments, const std::string& db = "");

  /// Kills it if it still runs.
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  /// To its standard input; it may have gone.
  void write(const std::string& text);
  void close_input();

  /// No one reads its standard output any more.
  void close_output();

  void signal(int number) const;

  /// Whether `text` appeared on standard output or error within some minutes.
  bool printed(const std::string& text);

  /// Whether it has ended.
  bool has_ended() const;

  /// Closes its input and waits for its end; kills what does not end.
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
