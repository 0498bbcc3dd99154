#include "console/stop_signals.hpp"

#include <cerrno>
#include <chrono>
#include <optional>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace txinbox::cli {
namespace {

constexpr int wake_up = SIGUSR2;  // ends the waiting thread; sigwait takes it, so it is never delivered

/// `timeout` sends a signal to the process and to its process group, so it comes twice. A second signal that is meant
/// comes later.
constexpr std::chrono::seconds least_distance(1);

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

StopSignals::StopSignals() {
  if (::pipe2(pipe_, O_CLOEXEC | O_NONBLOCK) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  sigemptyset(&signals_);
  for (int signal : {SIGINT, SIGTERM}) {
    if (!is_ignored(signal)) sigaddset(&signals_, signal);
  }
  sigaddset(&signals_, wake_up);
  ::pthread_sigmask(SIG_BLOCK, &signals_, &previous_);
  thread_ = std::thread([this] { run(); });
}

StopSignals::~StopSignals() {
  quit_.request_stop();
  ::pthread_kill(thread_.native_handle(), wake_up);
  thread_.join();
  ::pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
  ::close(pipe_[0]);
  ::close(pipe_[1]);
}

void StopSignals::request_stop() {
  source_.request_stop();
  const char byte = 0;
  // If the pipe is full, it is already readable.
  [[maybe_unused]] const auto written = ::write(pipe_[1], &byte, 1);
}

void StopSignals::run() {
  std::optional<std::chrono::steady_clock::time_point> first;
  while (!quit_.stop_requested()) {
    int signal = 0;
    if (::sigwait(&signals_, &signal) != 0 || signal == wake_up) continue;
    const auto now = std::chrono::steady_clock::now();
    if (!first) {
      first = now;
    } else if (now - *first < least_distance) {
      continue;
    } else {
      ::signal(signal, SIG_DFL);
      sigset_t one;
      sigemptyset(&one);
      sigaddset(&one, signal);
      ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
      ::raise(signal);
    }
    request_stop();
  }
}

}  // namespace txinbox::cli
