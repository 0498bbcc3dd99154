#pragma once

#include <chrono>
#include <string>

#include <sys/types.h>

namespace txinbox::torture {

/// The user's command that kills or restarts the server. The shell runs it repeatedly, one run at a time.
class UserCommand {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// `command`: empty for none. `every`: from the end of one run to the next run.
  UserCommand(std::string command, std::chrono::milliseconds every, Time now)
      : command_(std::move(command)), every_(every), next_(now + every) {}

  /// Starts it if it is due and `may_start` is true. Notices when it has ended.
  void attend(Time now, bool may_start);

  bool is_running() const { return pid_ > 0; }
  unsigned runs() const { return runs_; }
  unsigned failures() const { return failures_; }

 private:
  std::string command_;
  std::chrono::milliseconds every_;
  Time next_;
  pid_t pid_ = -1;
  unsigned runs_ = 0;
  unsigned failures_ = 0;
};

}  // namespace txinbox::torture
