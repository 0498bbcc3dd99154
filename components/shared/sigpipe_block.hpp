#pragma once

#include <csignal>
#include <ctime>

#include <pthread.h>

namespace txinbox::component {

/// As long as it lives, a write to a closed connection raises no SIGPIPE in this thread. The write returns EPIPE, as
/// with MSG_NOSIGNAL. It is for client libraries that write without this flag. The process keeps its signal handler.
///
/// Destroy it in the thread that created it.
class SigpipeBlock {
 public:
  SigpipeBlock() noexcept : was_pending_(is_pending()) {
    const sigset_t signals = only_sigpipe();
    ::pthread_sigmask(SIG_BLOCK, &signals, &before_);
  }
  ~SigpipeBlock() {
    const sigset_t signals = only_sigpipe();
    constexpr timespec no_wait{};
    // A signal that was pending before belongs to somebody else. A thread has at most one pending SIGPIPE.
    if (!was_pending_ && is_pending()) ::sigtimedwait(&signals, nullptr, &no_wait);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SigpipeBlock(const SigpipeBlock&) = delete;
  SigpipeBlock& operator=(const SigpipeBlock&) = delete;

 private:
  static sigset_t only_sigpipe() noexcept {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGPIPE);
    return signals;
  }
  static bool is_pending() noexcept {
    sigset_t pending;
    sigemptyset(&pending);
    ::sigpending(&pending);
    return sigismember(&pending, SIGPIPE) == 1;
  }

  const bool was_pending_;
  sigset_t before_{};
};

}  // namespace txinbox::component
