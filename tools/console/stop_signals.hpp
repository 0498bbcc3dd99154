#pragma once

#include <csignal>
#include <stop_token>
#include <thread>

namespace txinbox::cli {

/// While this object exists, SIGINT and SIGTERM do not end the process. They set a stop token and make a descriptor
/// readable. A second signal ends the process, if it comes at least a second after the first. A signal that was ignored
/// before stays ignored (nohup, background jobs).
///
/// The signals are blocked in every thread, and one thread takes them with sigwait. So no signal handler runs, and no
/// system call of a database client is interrupted. Create this object before other threads.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  std::stop_token token() const { return source_.get_token(); }
  void request_stop();
  bool stopped() const { return source_.stop_requested(); }

  /// Readable after the first signal.
  int wake_fd() const { return pipe_[0]; }

 private:
  void run();

  sigset_t signals_{};
  sigset_t previous_{};
  int pipe_[2] = {-1, -1};
  std::stop_source source_;
  std::stop_source quit_;
  std::thread thread_;
};

}  // namespace txinbox::cli
