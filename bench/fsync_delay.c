/* A library for LD_PRELOAD. It simulates a slower disk: each fsync and fdatasync of the program takes
 * TXINBOX_FSYNC_DELAY_US microseconds longer. The thread sleeps during this time, as it does for a real disk. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

typedef int (*sync_function)(int);

static void wait_for_disk(void) {
  const char* text = getenv("TXINBOX_FSYNC_DELAY_US");
  const long delay = text == NULL ? 0 : atol(text);
  struct timespec rest = {delay / 1000000, delay % 1000000 * 1000};
  while (nanosleep(&rest, &rest) != 0 && errno == EINTR) {
  }
}

int fsync(int fd) {
  const int result = ((sync_function)dlsym(RTLD_NEXT, "fsync"))(fd);
  wait_for_disk();
  return result;
}

int fdatasync(int fd) {
  const int result = ((sync_function)dlsym(RTLD_NEXT, "fdatasync"))(fd);
  wait_for_disk();
  return result;
}
