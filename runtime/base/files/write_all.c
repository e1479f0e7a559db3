/* SPDX-License-Identifier: Apache-2.0
 *
 * write_all.c: see write_all.h. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* sigtimedwait, pthread_sigmask */
#endif
#include "base/files/write_all.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int has_room(int file, size_t size) {
  struct rlimit limit;
  struct stat about;
  if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY || fstat(file, &about)) return 1;
  return (uint64_t)about.st_size <= limit.rlim_cur && size <= limit.rlim_cur - (uint64_t)about.st_size;
}

static int write_on(int file, const char *bytes, size_t size) {
  while (size) {
    const ssize_t n = write(file, bytes, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n ? errno : EIO;
    bytes += n;
    size -= (size_t)n;
  }
  return 0;
}

int qn_write_all(int file, const char *bytes, size_t size) {
  sigset_t beyond, kept, pending;
  const struct timespec now = {0, 0};
  if (!has_room(file, size)) return EFBIG;
  sigemptyset(&beyond);
  sigaddset(&beyond, SIGXFSZ);
  sigemptyset(&pending);
  sigpending(&pending);
  pthread_sigmask(SIG_BLOCK, &beyond, &kept);
  const int failed = write_on(file, bytes, size);
  /* SIGXFSZ is sent to the writing thread: take it off the pending signals, unless it was pending before. */
  if (failed == EFBIG && !sigismember(&pending, SIGXFSZ)) sigtimedwait(&beyond, NULL, &now);
  pthread_sigmask(SIG_SETMASK, &kept, NULL);
  return failed;
}
