#pragma once

#include <sys/wait.h>
#include <unistd.h>

namespace txinbox::test {

/// Runs it in a process of its own; returns its exit status, -1 for a signal, which one gets that does not end.
template <class F>
int in_process(const F& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    work();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace txinbox::test
