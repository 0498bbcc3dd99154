// A library for a MariaDB server (LD_PRELOAD). While the file $TXINBOX_HOLD_LOG.PID exists, it delays the server's
// writes to InnoDB's log. PID is the server's process id. Meanwhile other sessions see commits that are not on the
// disk.

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <sys/types.h>
#include <unistd.h>

namespace {

using Write = ssize_t (*)(int, const void*, size_t, off_t);

void wait_while_held(int fd) {
  const char* hold = std::getenv("TXINBOX_HOLD_LOG");
  if (hold == nullptr) return;
  char name[64];
  char file[4096];
  std::snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  const ssize_t length = ::readlink(name, file, sizeof file - 1);
  if (length <= 0) return;
  file[length] = '\0';
  if (std::strstr(file, "/ib_logfile") == nullptr) return;
  std::snprintf(file, sizeof file, "%s.%d", hold, static_cast<int>(::getpid()));
  while (::access(file, F_OK) == 0) ::usleep(1'000);
}

ssize_t write_late(const char* name, int fd, const void* data, size_t size, off_t at) {
  wait_while_held(fd);
  return reinterpret_cast<Write>(::dlsym(RTLD_NEXT, name))(fd, data, size, at);
}

}  // namespace

extern "C" {
ssize_t pwrite(int fd, const void* data, size_t size, off_t at) { return write_late("pwrite", fd, data, size, at); }
ssize_t pwrite64(int fd, const void* data, size_t size, off_t at) { return write_late("pwrite64", fd, data, size, at); }
}
