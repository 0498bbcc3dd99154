#include "torture/user_command.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "console/output.hpp"
#include "torture/child.hpp"

namespace txinbox::torture {

void UserCommand::attend(Time now, bool may_start) {
  if (pid_ > 0) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) != pid_) return;
    pid_ = -1;
    ++runs_;
    next_ = now + every_;
    if (status != 0) {
      ++failures_;
      cli::message(fmt::format("txinbox-torture: the command ended with {}", describe_end(status)));
    }
  } else if (!command_.empty() && may_start && now >= next_) {
    // Its output must not get into the report.
    pid_ = start({.file = "/bin/sh", .words = {"sh", "-c", command_}, .output = STDERR_FILENO, .has_own_group = true});
  }
}

}  // namespace txinbox::torture
