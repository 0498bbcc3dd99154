#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "console/line_reader.hpp"
#include "torture/messages.hpp"
#include "torture/worker.hpp"

namespace txinbox::torture {

/// A worker, as the parent sees it: a process of this very program at the other end of two pipes.
class WorkerProcess {
 public:
  /// Starts it. `url` reaches it by the environment alone.
  WorkerProcess(const WorkerOptions& options, const std::string& url);

  /// Kills it if it still runs.
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  unsigned number() const { return number_; }
  bool is_relay() const { return is_relay_; }
  int fd() const { return output_; }  ///< Readable when there is something to receive_replies.
  bool is_ready() const { return ready_; }
  const std::map<std::uint64_t, Assignment>& in_hand() const { return in_hand_; }

  void assign(Assignment assignment);

  /// A reply, with the assignment that it is for.
  struct Heard {
    Assignment assignment;
    Reply reply;
  };

  /// What it said meanwhile. Of a process that ended, all that it said is heard before `has_ended`.
  std::vector<Heard> listen();
  bool has_ended() const { return ended_; }

  void kill();         ///< SIGKILL; what it said before is still to be heard.
  void close_input();  ///< It ends when it has done what it has in hand.

  /// Waits for its end, which `listen` or `kill` told of.
  /// @return as `waitpid`.
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
  std::map<std::uint64_t, Assignment> in_hand_;
};

}  // namespace txinbox::torture
