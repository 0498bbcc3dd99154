#include "testing/child_run.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <txinbox/result.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

constexpr std::chrono::seconds limit{60};
/// The text that the child writes when it ends as it should. Another text is an error.
constexpr std::string_view ended = "ended";

[[noreturn]] void throw_errno(const char* call) { throw std::system_error(errno, std::generic_category(), call); }

void write_all(int file, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno != EINTR) return;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// Reads until the other end is closed. Returns false if the time is over before.
bool read_all(int file, std::string& text) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  std::array<char, 1024> buffer{};
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd poll{.fd = file, .events = POLLIN, .revents = 0};
    if (::poll(&poll, 1, static_cast<int>(left.count())) <= 0) continue;  // an interrupt, or the time is over
    const ssize_t count = ::read(file, buffer.data(), buffer.size());
    if (count == 0) return true;
    if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

[[noreturn]] void run_child(int file, const std::function<std::string(const std::function<void()>&)>& work) noexcept {
  std::string text;
  try {
    text = work([file] {
      write_all(file, ended);
      ::_exit(0);
    });
  } catch (...) {
    try {
      text = describe_error(std::current_exception());
    } catch (...) {
      text = "no memory";
    }
  }
  write_all(file, text);
  ::_exit(1);
}

}  // namespace

std::string run_in_child(const std::function<std::string(const std::function<void()>&)>& work) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) throw_errno("pipe2");
  const pid_t child = ::fork();
  if (child < 0) {
    const int error = errno;
    ::close(pipe[0]);
    ::close(pipe[1]);
    errno = error;
    throw_errno("fork");
  }
  if (child == 0) {
    ::close(pipe[0]);
    run_child(pipe[1], work);
  }
  ::close(pipe[1]);
  std::string text;
  const bool in_time = read_all(pipe[0], text);
  ::close(pipe[0]);
  if (!in_time) ::kill(child, SIGKILL);
  int status = 0;
  // Without a child to wait for, the program ignores SIGCHLD. The text says enough.
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (text == ended) return {};
  if (!in_time) return fmt::format("the process did not end within {} s", limit.count());
  if (text.empty() && WIFSIGNALED(status)) {
    return fmt::format("the process was ended by the signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  }
  return text.empty() ? "the process ended without a word" : text;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
