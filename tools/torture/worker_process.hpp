#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "console/line_reader.hpp"
#include "torture/messages.hpp"
#include "torture/worker.hpp"

namespace txinbox::torture {

/// A worker, as the parent sees it: a process of the same program, and two pipes to it.
class WorkerProcess {
 public:
  /// Starts it. It gets `url` only through the environment.
  WorkerProcess(const WorkerOptions& options, const std::string& url);

  /// Kills it if it still runs.
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  unsigned number() const { return number_; }
  bool is_relay() const { return is_relay_; }
  int fd() const { return output_; }  ///< Readable when receive_replies has something to read.
  bool is_ready() const { return ready_; }
  const std::map<std::uint64_t, Assignment>& unanswered() const { return unanswered_; }

  void assign(Assignment assignment);
  void write(const std::string& line);

  /// A reply, and the assignment to which it belongs.
  struct ReceivedReply {
    Assignment assignment;
    Reply reply;
  };

  /// The replies since the last call. Before `has_ended` is true, this returns all replies of a process that has ended.
  std::vector<ReceivedReply> receive_replies();

  /// As `receive_replies`, for a process that is an operator. It stops after one line.
  std::optional<std::string> receive_line();
  bool has_ended() const { return ended_; }

  void kill();         ///< Sends SIGKILL. Its earlier replies can still be read.
  void close_input();  ///< It ends when it has finished its assignments.

  /// Waits for its end. `receive_replies` or `kill` must have announced it. @return as `waitpid`.
  int reap();

 private:
  unsigned number_;
  bool is_relay_;
  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  bool ready_ = false;
  bool ended_ = false;
  std::unique_ptr<cli::LineReader> lines_;
  std::map<std::uint64_t, Assignment> unanswered_;
};

}  // namespace txinbox::torture
