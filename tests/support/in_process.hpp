#pragma once

#include <sys/wait.h>
#include <unistd.h>

namespace txinbox::test {

/// Runs it in a process of its own, which has no connection yet; returns its exit status, -1 for a signal.
template <class F>
int in_process(const F& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace txinbox::test
