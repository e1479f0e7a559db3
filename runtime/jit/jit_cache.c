/* SPDX-License-Identifier: Apache-2.0
 *
 * jit_cache.c: see jit_cache.h.
 *
 * An entry is a file named by its key's digest. It is written under a temporary name in the same folder and renamed, so
 * that readers see all of it or none, without locks, on NFS too; it is not synced: what a crash leaves incomplete fails
 * its checksum and is a miss. The time of a file's last change says when it was last used. Readers copy a file whole
 * before they look at it. Each call opens the folder anew and checks it: a host may close all descriptors, or move the
 * folder.
 *
 * A failure of the folder is permanent: the cache is not used any more. A failure of a write is not: what is
 * in the folder can still be read. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* O_NOFOLLOW and other names of POSIX.1-2008 */
#endif
#include "jit/jit_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/jit_environment.h"
#include "base/files/read_all.h"
#include "base/files/write_all.h"

#define PUTS_PER_EVICTION 64
#define HOUR 3600
#define NAME_SIZE 64 /* of our files' names; they are shorter */
#define N_HEX 32     /* of an entry's name */

struct qn_jit_cache {
  char *dir; /* "": no cache is wanted, or there is a failure */
  qn_log log;
  _Atomic(char *) failure; /* malloc'ed, or NULL; set at most once */
  atomic_flag has_warned;
  atomic_uint n_puts;
  int64_t limit; /* bytes */
};

/* ---- Failures of the folder ---- */

#define FAILURE_SIZE 220 /* with what comes before it, as much as a log takes */

static int is_first_warning(qn_jit_cache *cache) {
  return !atomic_flag_test_and_set(&cache->has_warned);
}

void qn_jit_cache_disable_log(qn_jit_cache *cache) {
  if (cache) atomic_flag_test_and_set(&cache->has_warned);
}

static void warn_unused(qn_jit_cache *cache) {
  const char *failure = atomic_load_explicit(&cache->failure, memory_order_acquire);
  if (failure && is_first_warning(cache)) {
    qn_log_say(&cache->log, QN_LOG_WARNING, "the disk cache is not used: %s", failure);
  }
}

/* The cache is not used from now on; the first failure of several threads stays. 0: no memory, the next call tries again. */
__attribute__((format(printf, 2, 3))) static int give_up(qn_jit_cache *cache, const char *format, ...) {
  char text[FAILURE_SIZE];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  char *failure = strdup(text), *expected = NULL;
  if (failure && !atomic_compare_exchange_strong(&cache->failure, &expected, failure)) free(failure);
  return failure != NULL;
}

/* ---- The format of an entry ----
 * Magic; version, sizes of key, check and value, 8 bytes each, little-endian; the digest of all bytes but its own, high
 * half first; key, check, value. */

static const char magic[8] = {'q', 'u', 'e', 'r', 'n', 'k', 'c', '\n'};
#define FORMAT_VERSION 1u
enum { VERSION_AT = 8, SIZES_AT = 16, DIGEST_AT = 40, HEADER_SIZE = 56 };

static uint64_t number_at(const char *bytes) {
  uint64_t number = 0;
  for (int i = 7; i >= 0; i--) number = number << 8 | (unsigned char)bytes[i];
  return number;
}

static void put_number(char *bytes, uint64_t number) {
  for (int i = 0; i < 8; i++, number >>= 8) bytes[i] = (char)(unsigned char)number;
}

static qn_digest checksum(const char *bytes, size_t size) {
  return qn_digest_add(qn_digest_of(bytes, DIGEST_AT), bytes + HEADER_SIZE, size - HEADER_SIZE);
}

int qn_jit_cache_parse(const char *bytes, size_t size, qn_cache_parts *parts) {
  if (size < HEADER_SIZE || memcmp(bytes, magic, sizeof magic)) return 0;
  if (number_at(bytes + VERSION_AT) != FORMAT_VERSION) return 0;
  const uint64_t key_size = number_at(bytes + SIZES_AT), check_size = number_at(bytes + SIZES_AT + 8);
  const uint64_t value_size = number_at(bytes + SIZES_AT + 16), room = size - HEADER_SIZE;
  if (key_size > room || check_size > room - key_size || value_size != room - key_size - check_size) return 0;
  const qn_digest digest = {number_at(bytes + DIGEST_AT), number_at(bytes + DIGEST_AT + 8)};
  if (!qn_digest_is_equal(digest, checksum(bytes, size))) return 0;
  parts->key = bytes + HEADER_SIZE;
  parts->check = parts->key + key_size;
  parts->value = parts->check + check_size;
  parts->key_size = (size_t)key_size;
  parts->check_size = (size_t)check_size;
  parts->value_size = (size_t)value_size;
  return 1;
}

static void copy_to(char **to, const char *bytes, size_t size) {
  if (size) memcpy(*to, bytes, size); /* `bytes` may be NULL */
  *to += size;
}

/* An entry's bytes, malloc'ed; NULL if it is too large, or for lack of memory. */
static char *make_entry(const qn_cache_parts *parts, size_t *size) {
  const size_t limit = QN_JIT_CACHE_ENTRY_LIMIT - HEADER_SIZE;
  if (parts->key_size > limit || parts->check_size > limit - parts->key_size ||
      parts->value_size > limit - parts->key_size - parts->check_size) {
    return NULL;
  }
  *size = HEADER_SIZE + parts->key_size + parts->check_size + parts->value_size;
  char *bytes = malloc(*size);
  if (!bytes) return NULL;
  memcpy(bytes, magic, sizeof magic);
  put_number(bytes + VERSION_AT, FORMAT_VERSION);
  put_number(bytes + SIZES_AT, parts->key_size);
  put_number(bytes + SIZES_AT + 8, parts->check_size);
  put_number(bytes + SIZES_AT + 16, parts->value_size);
  char *to = bytes + HEADER_SIZE;
  copy_to(&to, parts->key, parts->key_size);
  copy_to(&to, parts->check, parts->check_size);
  copy_to(&to, parts->value, parts->value_size);
  const qn_digest digest = checksum(bytes, *size);
  put_number(bytes + DIGEST_AT, digest.high);
  put_number(bytes + DIGEST_AT + 8, digest.low);
  return bytes;
}

static int is_equal(const char *a, size_t a_size, const char *b, size_t b_size) {
  return a_size == b_size && (a_size == 0 || memcmp(a, b, a_size) == 0);
}

/* ---- Names ---- */

static void name_entry(char name[NAME_SIZE], const char *key, size_t key_size) {
  const qn_digest digest = qn_digest_of(key, key_size);
  snprintf(name, NAME_SIZE, "%016llx%016llx.qkc", (unsigned long long)digest.high, (unsigned long long)digest.low);
}

static int is_entry_name(const char *name) {
  return strspn(name, "0123456789abcdef") == N_HEX && strcmp(name + N_HEX, ".qkc") == 0;
}

/* A name that no other process uses. If one does, on another machine or with the same pid in a container, O_EXCL fails and
 * the caller takes the next name. */
static void name_temporary(char name[NAME_SIZE]) {
  static atomic_uint count;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  snprintf(name, NAME_SIZE, "put-%lx-%x-%lx.tmp", (unsigned long)getpid(), atomic_fetch_add(&count, 1),
           (unsigned long)now.tv_nsec);
}

static int is_temporary_name(const char *name) {
  if (strncmp(name, "put-", 4)) return 0;
  const size_t n = strspn(name + 4, "0123456789abcdef-");
  return n > 0 && strcmp(name + 4 + n, ".tmp") == 0;
}

/* ---- The folder ---- */

/* As mkdir -p. On failure errno is set. */
static int make_folder(const char *dir) {
  char *path = strdup(dir);
  if (!path) return 0;
  const size_t length = strlen(path);
  int is_made = 1;
  while (is_made && mkdir(path, 0700) && errno != EEXIST) {
    char *slash = strrchr(path, '/');
    is_made = errno == ENOENT && slash && slash != path;
    if (is_made) *slash = 0;
  }
  for (size_t n = strlen(path); is_made && n < length; n = strlen(path)) {
    path[n] = '/';
    is_made = mkdir(path, 0700) == 0 || errno == EEXIST;
  }
  const int why = errno;
  free(path);
  errno = why;
  return is_made;
}

/* Whether this user has it, and no other may write to it. */
static int is_ours_alone(const struct stat *st) { return st->st_uid == geteuid() && !(st->st_mode & (S_IWGRP | S_IWOTH)); }

/* Opens the folder; makes it first if it is missing and `make`. On failure errno is set. */
static int open_or_make(const char *dir, int make) {
  const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  const int fd = open(dir, flags);
  return fd < 0 && errno == ENOENT && make && make_folder(dir) ? open(dir, flags) : fd;
}

/* The folder's descriptor; -1: there is no folder (and `make` is 0), or it is not used. */
static int open_folder(qn_jit_cache *cache, int make) {
  struct stat st;
  if (!cache) return -1;
  if (qn_jit_cache_failure(cache)[0]) {
    warn_unused(cache);
    return -1;
  }
  const int fd = open_or_make(cache->dir, make);
  if (fd < 0) {
    if (errno == ENOENT && !make) return -1;
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == EINTR) return -1; /* may pass */
    if (errno == ENOTDIR || errno == ELOOP) {
      give_up(cache, "it is no folder, or a link to one: %s", cache->dir);
    } else {
      give_up(cache, "it cannot be opened or made (%m): %s", cache->dir);
    }
  } else if (fstat(fd, &st) || st.st_uid != geteuid()) {
    give_up(cache, "it belongs to another user: %s", cache->dir);
  } else if (!is_ours_alone(&st)) {
    give_up(cache, "others may write to it: %s", cache->dir);
  } else {
    return fd;
  }
  if (fd >= 0) close(fd);
  warn_unused(cache);
  return -1;
}

/* ---- Files ---- */

/* Reads a whole file if it may be an entry: a regular file that no other user may write to, also not by another name. (It
 * has no name at all if it has been replaced since.) */
static int read_file(int folder, const char *name, qn_bytes *bytes, struct stat *st) {
  char *data = NULL;
  /* O_NONBLOCK: opening a FIFO must not block. */
  const int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return 0;
  if (fstat(fd, st) == 0 && S_ISREG(st->st_mode) && is_ours_alone(st) && st->st_nlink <= 1 && st->st_size >= HEADER_SIZE &&
      (uint64_t)st->st_size <= QN_JIT_CACHE_ENTRY_LIMIT) {
    bytes->size = (size_t)st->st_size;
    data = malloc(bytes->size + 1);
  }
  const int is_whole = data && qn_read_all(fd, data, bytes->size) == bytes->size;
  close(fd);
  if (data && !is_whole) { /* cut meanwhile, or unreadable */
    free(data);
    data = NULL;
  }
  bytes->data = data;
  return data != NULL;
}

/* 0: errno is set. */
static int write_file(int folder, const char *name, const char *bytes, size_t size) {
  char temporary[NAME_SIZE];
  int fd = -1;
  for (int i = 0; fd < 0 && i < 16; i++) {
    name_temporary(temporary);
    fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 && errno != EEXIST) return 0;
  }
  if (fd < 0) return 0;
  int why = qn_write_all(fd, bytes, size), is_written = why == 0;
  if (close(fd) && is_written) { /* where NFS reports that the disk is full */
    is_written = 0;
    why = errno;
  }
  if (is_written && renameat(folder, temporary, folder, name)) {
    is_written = errno == ENOENT; /* another process cleared the cache meanwhile */
    why = errno;
  }
  if (!is_written) unlinkat(folder, temporary, 0);
  errno = why;
  return is_written;
}

/* ---- Eviction ---- */

typedef struct file {
  char name[N_HEX + sizeof ".qkc"];
  struct timespec used;
  int64_t size;
} file;

static int by_use(const void *a, const void *b) {
  const file *x = a, *y = b;
  if (x->used.tv_sec != y->used.tv_sec) return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
  if (x->used.tv_nsec != y->used.tv_nsec) return x->used.tv_nsec < y->used.tv_nsec ? -1 : 1;
  return strcmp(x->name, y->name);
}

typedef struct file_list {
  file *items;
  size_t n, capacity;
  int64_t bytes;
} file_list;

static int append(file_list *files, const char *name, const struct stat *st) {
  if (files->n == files->capacity) {
    const size_t capacity = files->capacity ? files->capacity * 2 : 256;
    file *items = realloc(files->items, capacity * sizeof *items);
    if (!items) return 0;
    files->items = items;
    files->capacity = capacity;
  }
  file *f = &files->items[files->n++];
  memcpy(f->name, name, sizeof f->name);
  f->used = st->st_mtim;
  f->size = st->st_size;
  files->bytes += f->size;
  return 1;
}

/* A new listing of an open folder, from its beginning; NULL: it cannot be read. */
static DIR *list_folder(int folder) {
  const int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *dir = fd < 0 ? NULL : fdopendir(fd);
  if (!dir && fd >= 0) close(fd);
  return dir;
}

/* Brings the folder below its limit, if it is above; removes temporary files that are left over. */
static void evict(int folder, int64_t limit) {
  file_list files = {0};
  struct stat st;
  const time_t now = time(NULL);
  DIR *dir = list_folder(folder);
  if (!dir) return;
  for (const struct dirent *item; (item = readdir(dir));) {
    const int is_entry = is_entry_name(item->d_name);
    if (!is_entry && !is_temporary_name(item->d_name)) continue;
    if (fstatat(folder, item->d_name, &st, AT_SYMLINK_NOFOLLOW)) continue;
    if (is_entry && !append(&files, item->d_name, &st)) break;
    if (!is_entry && st.st_mtime < now - HOUR) unlinkat(folder, item->d_name, 0);
  }
  closedir(dir);
  if (files.bytes > limit) {
    qsort(files.items, files.n, sizeof *files.items, by_use);
    for (size_t i = 0; i < files.n && files.bytes > limit / 4 * 3; i++) {
      unlinkat(folder, files.items[i].name, 0);
      files.bytes -= files.items[i].size;
    }
  }
  free(files.items);
}

/* ---- Outside ---- */

/* The path of the cache folder, malloc'ed; "": no cache; NULL: out of memory. *is_unknown: no variable gives a path. */
static char *choose_folder(const char *dir, int *is_unknown) {
  const char *base = dir ? dir : qn_environment_cache_dir(), *rest = "";
  if (!base) {
    base = qn_environment_user_cache();
    rest = "/quern";
  }
  if (!base) {
    base = qn_environment_home();
    rest = "/.cache/quern";
  }
  *is_unknown = !base;
  if (!base || (!rest[0] && strcmp(base, "none") == 0)) return strdup("");
  const size_t size = strlen(base) + strlen(rest) + 1;
  char *path = malloc(size);
  if (!path) return NULL;
  snprintf(path, size, "%s%s", base, rest);
  /* Strip trailing slashes: with one, open() would follow a link. */
  for (size_t n = strlen(path); n > 1; path[--n] = 0) {
    if (path[n - 1] != '/' && !(path[n - 1] == '.' && path[n - 2] == '/')) break;
  }
  return path;
}

qn_jit_cache *qn_jit_cache_open(const char *dir, const qn_log *log) {
  const int kept_errno = errno;
  int is_unknown = 0;
  qn_jit_cache *cache = calloc(1, sizeof *cache);
  if (cache) cache->dir = choose_folder(dir, &is_unknown);
  if (!cache || !cache->dir) {
    free(cache);
    errno = kept_errno;
    return NULL;
  }
  if (log) cache->log = *log;
  cache->limit = QN_JIT_CACHE_LIMIT;
  atomic_init(&cache->failure, NULL);
  atomic_flag_clear(&cache->has_warned);
  int is_open = 1;
  if (is_unknown) {
    is_open = give_up(cache, "QUERN_CACHE_DIR, XDG_CACHE_HOME and HOME are not set");
  } else if (cache->dir[0] && cache->dir[0] != '/') {
    is_open = give_up(cache, "its path is not absolute: %s", cache->dir);
  }
  if (!is_open) {
    qn_jit_cache_close(cache);
    cache = NULL;
  }
  errno = kept_errno;
  return cache;
}

void qn_jit_cache_limit(qn_jit_cache *cache, int64_t bytes) { cache->limit = bytes; }

void qn_jit_cache_close(qn_jit_cache *cache) {
  if (!cache) return;
  free(atomic_load(&cache->failure));
  free(cache->dir);
  free(cache);
}

const char *qn_jit_cache_dir(const qn_jit_cache *cache) {
  return cache ? cache->dir : "";
}

const char *qn_jit_cache_failure(const qn_jit_cache *cache) {
  if (!cache) return "no memory";
  const char *failure = atomic_load_explicit(&cache->failure, memory_order_acquire);
  if (failure) return failure;
  return cache->dir[0] ? "" : "no disk cache is wanted";
}

/* Sets the file's time at a hit, at most once an hour. */
static void note_use(int folder, const char *name, const struct stat *st) {
  const time_t now = time(NULL);
  if (st->st_mtime < now - HOUR || st->st_mtime > now + HOUR) utimensat(folder, name, NULL, AT_SYMLINK_NOFOLLOW);
}

int qn_jit_cache_get(qn_jit_cache *cache, const char *key, size_t key_size, const char *check, size_t check_size,
                     qn_bytes *value) {
  const int kept_errno = errno, folder = open_folder(cache, 0);
  char name[NAME_SIZE];
  struct stat st;
  qn_bytes bytes = {0};
  qn_cache_parts parts;
  int is_hit = 0;
  if (folder >= 0) {
    name_entry(name, key, key_size);
    is_hit = read_file(folder, name, &bytes, &st) && qn_jit_cache_parse(bytes.data, bytes.size, &parts) &&
             is_equal(parts.key, parts.key_size, key, key_size) &&
             (!check || is_equal(parts.check, parts.check_size, check, check_size));
    if (is_hit) {
      memmove(bytes.data, parts.value, parts.value_size);
      bytes.data[parts.value_size] = 0;
      *value = (qn_bytes){bytes.data, parts.value_size};
      note_use(folder, name, &st);
    } else {
      free(bytes.data);
    }
    close(folder);
  }
  errno = kept_errno;
  return is_hit;
}

void qn_jit_cache_put(qn_jit_cache *cache, const char *key, size_t key_size, const char *check, size_t check_size,
                      const char *value, size_t size) {
  const int kept_errno = errno, folder = open_folder(cache, 1);
  const qn_cache_parts parts = {key, check, value, key_size, check_size, size};
  size_t entry_size = 0;
  char name[NAME_SIZE];
  char *entry = folder < 0 ? NULL : make_entry(&parts, &entry_size);
  if (entry) {
    name_entry(name, key, key_size);
    if (!write_file(folder, name, entry, entry_size) && is_first_warning(cache)) {
      qn_log_say(&cache->log, QN_LOG_WARNING, "the disk cache cannot be written to (%m): %s", cache->dir);
    }
    free(entry);
    if (atomic_fetch_add(&cache->n_puts, 1) % PUTS_PER_EVICTION == 0) evict(folder, cache->limit);
  }
  if (folder >= 0) close(folder);
  errno = kept_errno;
}

/* Whether the file's name is the digest of its key; under any other name an entry is never found. */
static int is_own_name(const char *name, const qn_cache_parts *parts) {
  char wanted[NAME_SIZE];
  name_entry(wanted, parts->key, parts->key_size);
  return strcmp(name, wanted) == 0;
}

int64_t qn_jit_cache_list(qn_jit_cache *cache, void (*each)(void *arg, const qn_cache_item *entry), void *arg) {
  const int kept_errno = errno, folder = open_folder(cache, 0);
  DIR *dir = folder < 0 ? NULL : list_folder(folder);
  int64_t n = 0;
  for (const struct dirent *item; dir && (item = readdir(dir));) {
    struct stat st;
    qn_bytes bytes;
    qn_cache_parts parts;
    if (!is_entry_name(item->d_name) || !read_file(folder, item->d_name, &bytes, &st)) continue;
    if (qn_jit_cache_parse(bytes.data, bytes.size, &parts) && is_own_name(item->d_name, &parts)) {
      const qn_cache_item entry = {parts.key, parts.key_size, (int64_t)bytes.size, (int64_t)st.st_mtime};
      if (each) each(arg, &entry);
      n++;
    }
    free(bytes.data);
  }
  if (dir) closedir(dir);
  if (folder >= 0) close(folder);
  errno = kept_errno;
  return n;
}

int64_t qn_jit_cache_clear(qn_jit_cache *cache) {
  const int kept_errno = errno, folder = open_folder(cache, 0);
  DIR *dir = folder < 0 ? NULL : list_folder(folder);
  int64_t n = 0;
  for (const struct dirent *item; dir && (item = readdir(dir));) {
    const int is_entry = is_entry_name(item->d_name);
    if (!is_entry && !is_temporary_name(item->d_name)) continue;
    if (unlinkat(folder, item->d_name, 0) == 0) n += is_entry;
  }
  if (dir) closedir(dir);
  if (folder >= 0) close(folder);
  errno = kept_errno;
  return n;
}
