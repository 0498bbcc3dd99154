#include "console/output.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "console/utf8.hpp"

namespace txinbox::cli {
namespace {

// The function runs before the sanitizers are ready, so they must leave it alone. So must their replacements of the
// functions of the C library: it makes the system calls itself.
#define TXINBOX_NOT_SANITIZED __attribute__((no_sanitize("address", "thread", "undefined")))

TXINBOX_NOT_SANITIZED void occupy_closed_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::syscall(SYS_fcntl, fd, F_GETFD) != -1) continue;
    // The new descriptor is the lowest free number, so it is fd. It is opened for the wrong direction, so that each use
    // fails.
    [[maybe_unused]] const long opened =
        ::syscall(SYS_openat, AT_FDCWD, "/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

#ifdef __GLIBC__
// Some libraries open descriptors while they are loaded. These functions run before.
[[gnu::section(".preinit_array"), gnu::used]] void (*const before_libraries)() = occupy_closed_descriptors;
#endif

}  // namespace

int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const auto count = ::write(fd, text.data(), text.size());
    if (count >= 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {
      pollfd wait{fd, POLLOUT, 0};
      ::poll(&wait, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

void occupy_standard_descriptors() { occupy_closed_descriptors(); }

bool Output::line(std::string_view text) { return lines(std::string(text) + '\n'); }

bool Output::lines(std::string_view text) {
  if (failed_) return false;
  if (const int error = write_all(STDOUT_FILENO, text); error != 0) {
    failed_ = true;
    message(fmt::format("txinbox: standard output: {}", std::generic_category().message(error)));
  }
  return !failed_;
}

void message(std::string_view text) {
  std::string whole;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    whole += printable(text.substr(at, end - at)) + '\n';
    at = end + 1;
  }
  write_all(STDERR_FILENO, whole);  // if this fails, there is nowhere to report it
}

}  // namespace txinbox::cli
