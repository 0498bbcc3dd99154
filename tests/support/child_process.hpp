#pragma once

#include <functional>

namespace txinbox::test {

/// How a child process ended.
struct ChildEnding {
  int signal = 0;  ///< That killed it; zero: none.
  int status = 0;  ///< That it exited with.
};

/// Runs `work` in a process of its own and waits for its end. The status is 0, or 3 when something was thrown. `work`
/// must not use a connection of the parent's. No other thread may be running. A child that hangs is ended by SIGALRM.
ChildEnding run_in_child(const std::function<void()>& work);

/// The same. Returns the exit status, or -1 for a child that a signal has ended.
int in_process(const std::function<void()>& work);

/// Ends this process as a crash does: nothing is destroyed, nothing flushed.
[[noreturn]] void die();

}  // namespace txinbox::test
