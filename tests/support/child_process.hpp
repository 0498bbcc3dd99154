#pragma once

#include <functional>

namespace txinbox::test {

/// How a child process ended.
struct ChildEnding {
  int signal = 0;  ///< The signal that killed it. Zero: no signal did.
  int status = 0;  ///< The status with which it exited.
};

/// Runs `work` in a child process and waits for its end. The status is 0, or 3 if `work` threw something. `work` must
/// not use a connection of the parent. No other thread may be running. SIGALRM ends a child that hangs.
ChildEnding run_in_child(const std::function<void()>& work);

/// The same. Returns the exit status, or -1 if a signal has ended the child.
int in_process(const std::function<void()>& work);

/// Ends this process as a crash does: it destroys nothing and flushes nothing.
[[noreturn]] void die();

}  // namespace txinbox::test
