/* SPDX-License-Identifier: Apache-2.0
 *
 * output_file.c: see output_file.h. */
#include "output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- What a signal must remove ---- */

static char *volatile temporaries[OUTPUT_FILE_MAX];

static void remember(char *path) {
  for (int i = 0; i < OUTPUT_FILE_MAX; i++) {
    if (!temporaries[i]) {
      temporaries[i] = path;
      return;
    }
  }
}

static void forget(const char *path) {
  for (int i = 0; i < OUTPUT_FILE_MAX; i++)
    if (temporaries[i] == path) temporaries[i] = NULL;
}

static void remove_all(int signal_number) {
  for (int i = 0; i < OUTPUT_FILE_MAX; i++)
    if (temporaries[i]) unlink(temporaries[i]);
  raise(signal_number); /* the default action, restored by SA_RESETHAND, when this returns */
}

void output_file_catch_signals(void) {
  static const int ending[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGXCPU};
  struct sigaction action = {.sa_handler = remove_all, .sa_flags = (int)SA_RESETHAND}, before;
  for (size_t i = 0; i < sizeof ending / sizeof ending[0]; i++) {
    /* Signals that are ignored (nohup) stay so. */
    if (sigaction(ending[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL) sigaction(ending[i], &action, NULL);
  }
  signal(SIGXFSZ, SIG_IGN); /* a limit on files' size is an error of write */
}

/* ---- Where to ---- */

/* The file that `path` is, or is to be, without links in it; malloc'ed. */
static char *find_target(const char *path, char *why) {
  struct stat facts;
  if (lstat(path, &facts) == 0) {
    char *target = realpath(path, NULL);
    if (!target && errno == ENOENT)
      refuse(why, "this is a link to nothing");
    else if (!target)
      refuse(why, "%s", strerror(errno));
    return target;
  }
  if (errno != ENOENT) return refuse(why, "%s", strerror(errno)), NULL;
  const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
  char *folder = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
  char *real = folder ? realpath(folder, NULL) : NULL, *target = NULL;
  if (!real)
    refuse(why, "%s", errno == ENOENT ? "there is no such folder" : strerror(errno));
  else if (!*base)
    refuse(why, "there is no such folder");
  else if (asprintf(&target, "%s/%s", strcmp(real, "/") == 0 ? "" : real, base) < 0)
    target = (refuse(why, "out of memory"), NULL);
  free(folder);
  free(real);
  return target;
}

static int check_target(const char *target, char *why) {
  struct stat facts;
  if (stat(target, &facts) != 0) return errno == ENOENT ? 1 : refuse(why, "%s", strerror(errno));
  if (S_ISDIR(facts.st_mode)) return refuse(why, "this is a folder");
  if (!S_ISREG(facts.st_mode)) return refuse(why, "this is not a regular file");
  if (faccessat(AT_FDCWD, target, W_OK, AT_EACCESS) != 0) return refuse(why, "%s", strerror(errno));
  return 1;
}

static int create_temporary(output_file *file, char *why) {
  const int folder_length = (int)(strrchr(file->target, '/') - file->target);
  for (int tries = 0; tries < 8; tries++) {
    uint64_t number;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) return refuse(why, "%s", strerror(errno));
    const unsigned long long n = number;
    if (asprintf(&file->temporary, "%.*s/.quern-%016llx.tmp", folder_length, file->target, n) < 0) {
      file->temporary = NULL;
      return refuse(why, "out of memory");
    }
    remember(file->temporary);
    file->fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (file->fd >= 0) return 1;
    const int error = errno;
    forget(file->temporary);
    free(file->temporary);
    file->temporary = NULL;
    if (error != EEXIST) return refuse(why, "no file can be made in its folder: %s", strerror(error));
  }
  return refuse(why, "no file can be made in its folder");
}

/* Room on the disk; file systems that cannot promise any are taken at their word later, by write. */
static int reserve(output_file *file, int64_t bytes, char *why) {
  int result;
  if (bytes <= 0) return 1;
  do result = fallocate(file->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes);
  while (result != 0 && errno == EINTR);
  if (result == 0 || (errno != ENOSPC && errno != EFBIG && errno != EDQUOT)) return 1;
  return refuse(why, "no room for %lld bytes: %s", (long long)bytes, strerror(errno));
}

int output_file_begin(output_file *file, const char *path, int64_t bytes, char why[WHY_SIZE]) {
  memset(file, 0, sizeof *file);
  file->fd = -1;
  file->target = find_target(path, why);
  if (file->target && check_target(file->target, why) && create_temporary(file, why) && reserve(file, bytes, why))
    return 1;
  output_file_end(file);
  return 0;
}

/* ---- Writing ---- */

/* To a place in the file; at < 0: to its end. */
static int write_bytes(int fd, int64_t at, const void *bytes, size_t size, char *why) {
  const char *from = bytes;
  for (size_t done = 0; done < size;) {
    const size_t step = size - done < 1 << 30 ? size - done : 1 << 30;
    const ssize_t n = at < 0 ? write(fd, from + done, step) : pwrite(fd, from + done, step, (off_t)(at + (int64_t)done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return refuse(why, "cannot be written: %s", n < 0 ? strerror(errno) : "the disk takes nothing more");
    done += (size_t)n;
  }
  return 1;
}

int output_file_write(output_file *file, const void *bytes, size_t size, char why[WHY_SIZE]) {
  return write_bytes(file->fd, -1, bytes, size, why);
}

int output_file_patch(output_file *file, int64_t offset, const void *bytes, size_t size, char why[WHY_SIZE]) {
  return write_bytes(file->fd, offset, bytes, size, why);
}

int output_file_finish(output_file *file, char why[WHY_SIZE]) {
  struct stat facts;
  if (stat(file->target, &facts) == 0 && S_ISREG(facts.st_mode)) {
    /* Root keeps the owner too; others cannot. The mode last: a change of owner clears bits of it. */
    if (fchown(file->fd, facts.st_uid, facts.st_gid) != 0) errno = 0;
    if (fchmod(file->fd, facts.st_mode & 0777) != 0)
      return refuse(why, "cannot be given its mode: %s", strerror(errno));
  }
  const int synced = fsync(file->fd) == 0 || errno == EINVAL || errno == EROFS; /* those: nothing there to sync */
  const int error = errno, closed = close(file->fd);
  file->fd = -1;
  if (!synced || closed != 0) return refuse(why, "cannot be written: %s", strerror(synced ? errno : error));
  return 1;
}

int output_file_publish(output_file *file, char why[WHY_SIZE]) {
  if (rename(file->temporary, file->target) != 0) return refuse(why, "cannot be replaced: %s", strerror(errno));
  forget(file->temporary);
  free(file->temporary);
  file->temporary = NULL;
  return 1;
}

void output_file_end(output_file *file) {
  if (!file->target && !file->temporary) return;
  if (file->fd >= 0) close(file->fd);
  if (file->temporary) {
    unlink(file->temporary);
    forget(file->temporary);
    free(file->temporary);
  }
  free(file->target);
  memset(file, 0, sizeof *file);
  file->fd = -1;
}
