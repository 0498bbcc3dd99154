#include "support/child_process.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif

namespace txinbox::test {
namespace {

/// A child does not free what the threads of its parent have, so it always has leaks.
void ignore_leaks() {
#ifdef VALGRIND_CLO_CHANGE
  VALGRIND_CLO_CHANGE("--leak-check=no");
#endif
}

}  // namespace

ChildEnding run_in_child(const std::function<void()>& work) {
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no process can be started");
  if (child == 0) {
    alarm(600);  // ends a child that hangs
    ignore_leaks();
    try {
      work();
    } catch (...) {
      _exit(3);
    }
    _exit(0);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) throw std::runtime_error("a process cannot be waited for");
  if (WIFSIGNALED(status)) return {.signal = WTERMSIG(status)};
  return {.status = WEXITSTATUS(status)};
}

int in_process(const std::function<void()>& work) {
  const ChildEnding end = run_in_child(work);
  return end.signal == 0 ? end.status : -1;
}

void die() {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

}  // namespace txinbox::test
