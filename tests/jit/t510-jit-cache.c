/* SPDX-License-Identifier: Apache-2.0
 * tags: memory threads
 *
 * t510: what is put is got, by any number of processes and threads; damaged, forged and foreign files are misses; a
 * folder that cannot be trusted or written to is one warning; the folder stays below its limit. Runs under TSan as
 * well. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/digest.h"
#include "runtime/jit/jit_cache.h"
#include "tap.h"

/* ---- What is said ---- */

static atomic_int n_said;
static char said[300];

static void hear(void *host, int level, const char *text) {
  if (host != said || level != QN_LOG_WARNING) bail("not our log, or not a warning: %s", text);
  if (atomic_fetch_add(&n_said, 1) == 0) snprintf(said, sizeof said, "%s", text);
}

static const qn_log our_log = {hear, said};

static void forget(void) {
  atomic_store(&n_said, 0);
  said[0] = 0;
}

/* ---- Files ---- */

static char base[200]; /* all is in here */

/* Good for a while only. */
static const char *in_base(const char *name) {
  static char paths[16][300];
  static int next;
  char *path = paths[next++ % 16];
  snprintf(path, sizeof paths[0], "%s/%s", base, name);
  return path;
}

/* Its mode, 0 if it is not there. */
static unsigned mode_of(const char *path) {
  struct stat st;
  return lstat(path, &st) ? 0 : st.st_mode;
}

static void write_bytes(const char *path, const char *bytes, size_t size) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0 || write(fd, bytes, size) != (ssize_t)size || close(fd)) bail("%s cannot be written", path);
}

static size_t read_bytes(const char *path, char *bytes, size_t size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t n = fd < 0 ? -1 : read(fd, bytes, size);
  if (n < 0 || close(fd)) bail("%s cannot be read", path);
  return (size_t)n;
}

static const char *entry_path(const char *folder, const char *key) {
  static char paths[4][400];
  static int next;
  char *path = paths[next++ % 4];
  const qn_digest d = qn_digest_of(key, strlen(key));
  snprintf(path, sizeof paths[0], "%s/%016llx%016llx.qkc", folder, (unsigned long long)d.high,
           (unsigned long long)d.low);
  return path;
}

/* Sets when a file was last changed, by seconds from now. */
static void set_age(const char *path, long seconds) {
  const struct timespec then = {time(NULL) - seconds, 0}, times[2] = {then, then};
  if (utimensat(AT_FDCWD, path, times, 0)) bail("%s cannot be aged", path);
}

static long age_of(const char *path) {
  struct stat st;
  if (stat(path, &st)) bail("%s is not there", path);
  return (long)(time(NULL) - st.st_mtime);
}

static int n_files(const char *folder, const char *ending) {
  int n = 0;
  DIR *dir = opendir(folder);
  if (!dir) return -1;
  for (const struct dirent *item; (item = readdir(dir));) {
    const size_t length = strlen(item->d_name), end = strlen(ending);
    n += item->d_name[0] != '.' && length >= end && strcmp(item->d_name + length - end, ending) == 0;
  }
  closedir(dir);
  return n;
}

static int n_descriptors(void) {
  return n_files("/proc/self/fd", "");
}

static void remove_all(const char *path) {
  char command[400];
  snprintf(command, sizeof command, "rm -rf '%s'", path);
  if (system(command)) bail("%s cannot be removed", path);
}

/* ---- Short forms ---- */

static qn_jit_cache *open_cache(const char *dir) {
  qn_jit_cache *cache = qn_jit_cache_open(dir, &our_log);
  if (!cache) bail("no memory");
  return cache;
}

static void put(qn_jit_cache *cache, const char *key, const char *check, const char *value) {
  qn_jit_cache_put(cache, key, strlen(key), check, strlen(check), value, strlen(value));
}

/* What is there under key and check (NULL: any); "(miss)". */
static const char *get(qn_jit_cache *cache, const char *key, const char *check) {
  static _Thread_local char text[200];
  qn_bytes value = {0};
  if (!qn_jit_cache_get(cache, key, strlen(key), check, check ? strlen(check) : 0, &value)) return "(miss)";
  snprintf(text, sizeof text, "%s", value.size == strlen(value.data) ? value.data : "(zero bytes)");
  free(value.data);
  return text;
}

static int is_hit(qn_jit_cache *cache, const char *key) {
  return strcmp(get(cache, key, NULL), "(miss)") != 0;
}

/* What a child returns that calls that. */
static int in_child(int (*child)(void)) {
  int status = -1;
  const pid_t pid = fork();
  if (pid == 0) _exit(child());
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

/* ---- What is put is got ---- */

static void test_basics(void) {
  char folder[300];
  snprintf(folder, sizeof folder, "%s", in_base("deep/er/cache"));
  qn_jit_cache *cache = open_cache(folder);
  is_str(qn_jit_cache_dir(cache), folder, "the folder");
  errno = 77;
  is_str(get(cache, "key", "check"), "(miss)", "a folder that is not there: a miss");
  is_int(qn_jit_cache_list(cache, NULL, NULL), 0, "  with no entries");
  is_int(qn_jit_cache_clear(cache), 0, "  and nothing to clear");
  is_int(errno, 77, "  errno is kept");
  is_int(mode_of(in_base("deep")), 0, "  it is not made yet");
  errno = 77;
  put(cache, "key", "check", "value");
  is_int(errno, 77, "errno is kept");
  is_str(get(cache, "key", "check"), "value", "what was put");
  is_str(get(cache, "key", NULL), "value", "  whatever the check");
  is_str(get(cache, "key", "chuck"), "(miss)", "  not with another one");
  is_str(get(cache, "key", ""), "(miss)", "  nor with an empty one");
  is_str(get(cache, "kex", "check"), "(miss)", "  nor under another key");
  is_int(mode_of(folder) & 07777, 0700, "the folder is its user's alone");
  is_int(mode_of(in_base("deep")) & 07777, 0700, "  and so are those it is in");
  is_int(mode_of(entry_path(folder, "key")), S_IFREG | 0600, "so is an entry, named by its key's digest");
  is_int(n_files(folder, ""), 1, "  nothing else is there");
  put(cache, "key", "chuck", "other");
  is_str(get(cache, "key", "chuck"), "other", "the last one put is the one");
  is_str(get(cache, "key", "check"), "(miss)", "  and the only one");
  qn_jit_cache *second = open_cache(folder);
  is_str(get(second, "key", "chuck"), "other", "another cache on that folder");
  qn_jit_cache_close(second);

  qn_bytes value;
  const char bytes[] = "a\0b\0";
  qn_jit_cache_put(cache, bytes, 3, bytes, 2, bytes, 4);
  ok(qn_jit_cache_get(cache, bytes, 3, bytes, 2, &value) && value.size == 4 && memcmp(value.data, bytes, 5) == 0,
     "zero bytes in all parts; one more behind the value");
  free(value.data);
  ok(!qn_jit_cache_get(cache, bytes, 2, bytes, 2, &value), "  part of the key is another key");
  qn_jit_cache_put(cache, NULL, 0, NULL, 0, NULL, 0);
  ok(qn_jit_cache_get(cache, NULL, 0, "", 0, &value) && value.size == 0 && value.data[0] == 0,
     "nothing, under nothing");
  free(value.data);

  const size_t large = QN_JIT_CACHE_ENTRY_LIMIT;
  char *much = calloc(1, large);
  if (!much) bail("no memory");
  qn_jit_cache_put(cache, "much", 4, "", 0, much, large - 1000);
  ok(qn_jit_cache_get(cache, "much", 4, "", 0, &value) && value.size == large - 1000, "a large value");
  free(value.data);
  qn_jit_cache_put(cache, "more", 4, "", 0, much, large);
  ok(!is_hit(cache, "more"), "  a larger one is not kept");
  free(much);
  is_int(n_said, 0, "nothing was worth a warning (%s)", said);
  is_str(qn_jit_cache_failure(cache), "", "  nor has it failed");

  remove_all(in_base("deep"));
  ok(!is_hit(cache, "key"), "a folder that is removed meanwhile: a miss");
  put(cache, "key", "check", "value");
  ok(is_hit(cache, "key"), "  the next put makes it anew");
  qn_jit_cache_close(cache);
  remove_all(in_base("deep"));

  is_str(qn_jit_cache_dir(NULL), "", "no cache has no folder");
  ok(qn_jit_cache_failure(NULL)[0], "  but a failure");
  put(NULL, "key", "check", "value");
  is_int(is_hit(NULL, "key") + qn_jit_cache_list(NULL, NULL, NULL) + qn_jit_cache_clear(NULL), 0, "  and misses");
  qn_jit_cache_close(NULL);
}

/* ---- Damage ---- */

static char entry[400];
static size_t entry_size;

static void damaged(qn_jit_cache *cache, const char *path, const char *bytes, size_t size, const char *what,
                    size_t where) {
  write_bytes(path, bytes, size);
  group_count(1);
  if (is_hit(cache, "key")) group_fail("%s %zu: a hit", what, where);
  if (qn_jit_cache_list(cache, NULL, NULL)) group_fail("%s %zu: listed", what, where);
}

static void test_damage(void) {
  char folder[300];
  snprintf(folder, sizeof folder, "%s", in_base("damage"));
  qn_jit_cache *cache = open_cache(folder);
  put(cache, "key", "check", "some value");
  char path[400], changed[800];
  snprintf(path, sizeof path, "%s", entry_path(folder, "key"));
  entry_size = read_bytes(path, entry, sizeof entry);
  group_begin("each bit flipped is a miss");
  for (size_t i = 0; i < entry_size; i++) {
    for (int bit = 0; bit < 8; bit++) {
      memcpy(changed, entry, entry_size);
      changed[i] = (char)(changed[i] ^ 1 << bit);
      damaged(cache, path, changed, entry_size, "byte", i);
    }
  }
  group_end();
  group_begin("each byte set to something else is a miss");
  for (size_t i = 0; i < entry_size; i++) {
    for (int c = 0; c < 256; c++) {
      if (c == (unsigned char)entry[i]) continue;
      memcpy(changed, entry, entry_size);
      changed[i] = (char)c;
      qn_cache_parts parts;
      group_count(1);
      if (qn_jit_cache_parse(changed, entry_size, &parts)) group_fail("byte %zu, now %d", i, c);
    }
  }
  group_end();
  group_begin("each shorter file is a miss");
  for (size_t n = 0; n < entry_size; n++) damaged(cache, path, entry, n, "size", n);
  group_end();
  group_begin("each longer file is a miss");
  for (size_t n = 1; n <= 200; n++) {
    memcpy(changed, entry, entry_size);
    memset(changed + entry_size, n % 2 ? 0 : 'x', n);
    damaged(cache, path, changed, entry_size + n, "more by", n);
  }
  memcpy(changed, entry, entry_size);
  memcpy(changed + entry_size, entry, entry_size);
  damaged(cache, path, changed, entry_size * 2, "twice", 0);
  group_end();
  write_bytes(path, entry, entry_size);
  is_str(get(cache, "key", "check"), "some value", "undamaged it is a hit");
  write_bytes(path, "x", 1);
  put(cache, "key", "check", "new");
  is_str(get(cache, "key", "check"), "new", "a damaged entry is replaced");

  write_bytes(entry_path(folder, "another"), entry, entry_size);
  ok(!is_hit(cache, "another"), "an entry under the name of another key is a miss");
  is_int(qn_jit_cache_list(cache, NULL, NULL), 1, "  and not listed");

  put(cache, "third", "check", "value");
  rename(entry_path(folder, "third"), in_base("elsewhere"));
  if (symlink(in_base("elsewhere"), entry_path(folder, "third"))) bail("no links here");
  ok(!is_hit(cache, "third"), "a link to a good entry is a miss");
  unlink(entry_path(folder, "third"));
  mkdir(entry_path(folder, "third"), 0700);
  ok(!is_hit(cache, "third"), "a folder in its place is a miss");
  rmdir(entry_path(folder, "third"));
  if (mkfifo(entry_path(folder, "third"), 0600)) bail("no pipes here");
  ok(!is_hit(cache, "third"), "a pipe in its place is a miss, and not waited for");
  if (geteuid() == 0) {
    put(cache, "third", "check", "value");
    if (chown(entry_path(folder, "third"), 65534, 65534)) bail("no chown");
    ok(!is_hit(cache, "third"), "another user's file in its place is a miss");
  } else {
    skip(1, "only root gives files away");
  }
  const int fd = open(entry_path(folder, "sparse"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, (off_t)1 << 40)) diag("no file of a terabyte here");
  close(fd);
  ok(!is_hit(cache, "sparse"), "a file of absurd size is a miss");
  unlink(entry_path(folder, "sparse"));
  is_int(n_said, 0, "none of these is worth a warning (%s)", said);
  qn_jit_cache_close(cache);
}

/* ---- Many at once ---- */

#define N_SHARED 8

/* A key's only value: reading another one, or part of it, shows. */
static size_t value_of(const char *key, char *value) {
  const qn_digest d = qn_digest_of(key, strlen(key));
  const size_t size = d.low % 20000;
  for (size_t i = 0; i < size; i++) value[i] = (char)(d.high >> i % 8 * 8 ^ i);
  return size;
}

/* -1: a miss; 1: the value; 0: something else. */
static int check_value(qn_jit_cache *cache, const char *key) {
  static _Thread_local char wanted[20000];
  const size_t size = value_of(key, wanted);
  qn_bytes value;
  if (!qn_jit_cache_get(cache, key, strlen(key), "check", 5, &value)) return -1;
  const int good = value.size == size && memcmp(value.data, wanted, size) == 0;
  free(value.data);
  return good;
}

static void put_value(qn_jit_cache *cache, const char *key) {
  static _Thread_local char value[20000];
  qn_jit_cache_put(cache, key, strlen(key), "check", 5, value, value_of(key, value));
}

/* One of many: shared keys and keys of its own, put and got. 0: all was right. */
static int work(qn_jit_cache *cache, int me, int rounds) {
  int bad = 0;
  char key[40];
  for (int i = 0; i < rounds; i++) {
    snprintf(key, sizeof key, "shared %d", (i + me) % N_SHARED);
    bad |= check_value(cache, key) == 0;
    put_value(cache, key);
    bad |= check_value(cache, key) != 1;
    snprintf(key, sizeof key, "own %d %d", me, i % 10);
    put_value(cache, key);
    bad |= check_value(cache, key) != 1;
  }
  return bad;
}

static void test_processes(void) {
  enum { N = 16 };
  char folder[300];
  snprintf(folder, sizeof folder, "%s", in_base("deep/processes"));
  int start[2], failures = 0, missing = 0;
  pid_t pids[N];
  char go[N] = {0};
  if (pipe(start)) bail("no pipe");
  for (int p = 0; p < N; p++) {
    pids[p] = fork();
    if (pids[p] < 0) bail("no process");
    if (pids[p] == 0) {
      qn_jit_cache *cache = open_cache(folder);
      if (read(start[0], go, 1) != 1) _exit(1); /* all together, on a folder that is not there */
      _exit(work(cache, p, 30) || n_said);
    }
  }
  if (write(start[1], go, N) != N) bail("no start");
  for (int p = 0; p < N; p++) {
    int status = -1;
    waitpid(pids[p], &status, 0);
    failures += status != 0;
  }
  close(start[0]);
  close(start[1]);
  is_int(failures, 0, "%d processes on an empty cache get what was put, and no warning", N);
  qn_jit_cache *cache = open_cache(folder);
  for (int p = 0; p < N; p++) {
    for (int i = 0; i < 10; i++) {
      char key[40];
      snprintf(key, sizeof key, "own %d %d", p, i);
      missing += check_value(cache, key) != 1;
    }
  }
  is_int(missing, 0, "  all of it is there afterwards");
  is_int(qn_jit_cache_list(cache, NULL, NULL), N * 10 + N_SHARED, "  and is listed");
  is_int(n_files(folder, ""), N * 10 + N_SHARED, "  nothing else is there");
  qn_jit_cache_close(cache);
}

/* Writers that end at any moment leave no wrong entry. */
static void test_killed(void) {
  enum { N = 20 };
  char folder[300], key[40];
  int wrong = 0;
  rng r;
  rng_seed(&r, 510);
  snprintf(folder, sizeof folder, "%s", in_base("killed"));
  for (int p = 0; p < N; p++) {
    const pid_t pid = fork();
    if (pid < 0) bail("no process");
    if (pid == 0) {
      qn_jit_cache *cache = open_cache(folder);
      for (;;) work(cache, 0, 100);
    }
    usleep((useconds_t)rng_below(&r, 20000));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
  }
  qn_jit_cache *cache = open_cache(folder);
  for (int i = 0; i < N_SHARED; i++) {
    snprintf(key, sizeof key, "shared %d", i);
    wrong += check_value(cache, key) == 0;
  }
  is_int(wrong, 0, "%d processes are killed while they put: no value is wrong", N);
  is_int(qn_jit_cache_list(cache, NULL, NULL), n_files(folder, ".qkc"), "  each entry is sound");
  qn_jit_cache_clear(cache);
  is_int(n_files(folder, ""), 0, "  and clear leaves nothing of what they have left");
  qn_jit_cache_close(cache);
}

typedef struct worker {
  qn_jit_cache *cache;
  int me, bad;
} worker;

static void *work_in_thread(void *arg) {
  worker *w = arg;
  if (w->me == 0) {
    for (int i = 0; i < 20; i++) w->bad |= qn_jit_cache_list(w->cache, NULL, NULL) < 0;
  } else {
    w->bad = work(w->cache, w->me, 20);
  }
  return NULL;
}

static void *clear_in_thread(void *arg) {
  worker *w = arg;
  char key[40];
  for (int i = 0; i < 60; i++) {
    snprintf(key, sizeof key, "shared %d", i % N_SHARED);
    put_value(w->cache, key);
    w->bad |= check_value(w->cache, key) == 0;
    if (i % 20 == w->me) qn_jit_cache_clear(w->cache);
  }
  return NULL;
}

static void *miss_in_thread(void *arg) {
  worker *w = arg;
  for (int i = 0; i < 10; i++) {
    put(w->cache, "key", "", "value");
    w->bad |= is_hit(w->cache, "key");
    w->bad |= !qn_jit_cache_failure(w->cache)[0];
  }
  return NULL;
}

static int run_threads(const char *folder, void *(*run)(void *arg)) {
  enum { N = 8 };
  pthread_t threads[N];
  worker workers[N];
  int bad = 0;
  qn_jit_cache *cache = open_cache(folder);
  forget();
  for (int t = 0; t < N; t++) {
    workers[t] = (worker){cache, t, 0};
    if (pthread_create(&threads[t], NULL, run, &workers[t])) bail("no thread");
  }
  for (int t = 0; t < N; t++) {
    pthread_join(threads[t], NULL);
    bad += workers[t].bad;
  }
  qn_jit_cache_close(cache);
  return bad;
}

static void test_threads(void) {
  is_int(run_threads(in_base("threads"), work_in_thread), 0, "threads on one cache get what was put");
  is_int(n_said, 0, "  without a warning (%s)", said);
  is_int(run_threads(in_base("threads"), clear_in_thread), 0, "threads that clear while others put");
  is_int(n_said, 0, "  without a warning (%s)", said);
  is_int(n_files(in_base("threads"), ".tmp"), 0, "  and leave nothing behind");
  write_bytes(in_base("threads/file"), "", 0);
  is_int(run_threads(in_base("threads/file"), miss_in_thread), 0, "threads on a folder that is none miss");
  is_int(n_said, 1, "  with one warning");
  forget();
}

/* ---- Folders ---- */

/* Put and got twice: misses, one warning with `part` in it, NULL: none. */
static void unusable(const char *dir, const char *part, const char *name) {
  forget();
  const int before = n_descriptors();
  qn_jit_cache *cache = open_cache(dir);
  is_int(n_said, 0, "%s", name);
  int hits = 0;
  errno = 77;
  for (int i = 0; i < 2; i++) {
    hits += is_hit(cache, "key");
    put(cache, "key", "check", "value");
    hits += is_hit(cache, "key");
    hits += qn_jit_cache_list(cache, NULL, NULL) != 0;
    hits += qn_jit_cache_clear(cache) != 0;
  }
  is_int(hits, 0, "  only misses");
  is_int(errno, 77, "  errno is kept");
  is_int(n_said, part != NULL, "  %s", said);
  if (part) {
    has_str(said, part, "  says why");
    has_str(said, qn_jit_cache_failure(cache), "  as the cache does");
  }
  ok(qn_jit_cache_failure(cache)[0], "  it has failed");
  qn_jit_cache_close(cache);
  is_int(n_descriptors(), before, "  no descriptor is left");
  forget();
}

static void test_folders(void) {
  char long_path[6000], path[400];
  write_bytes(in_base("file"), "x", 1);
  unusable(in_base("file"), "no folder", "a file where the folder should be");
  unusable(in_base("file/cache"), "no folder", "a path under a file");
  unusable("/proc/quern-nowhere/cache", "cannot be opened or made", "a path where no folder can be made");
  unusable("relative/cache", "not absolute: relative/cache", "a relative path");
  unusable(".", "not absolute", "the working directory");
  memset(long_path, 'x', sizeof long_path);
  long_path[0] = '/';
  long_path[sizeof long_path - 1] = 0;
  unusable(long_path, "the disk cache is not used: it cannot be opened or made", "a path that is too long");
  unusable("", NULL, "no cache, said by the host");
  unusable("none", NULL, "no cache, in a word");

  char good[300];
  snprintf(good, sizeof good, "%s", in_base("good"));
  qn_jit_cache *cache = open_cache(good);
  put(cache, "key", "check", "value");
  if (symlink(good, in_base("link")) || symlink(in_base("absent"), in_base("dangling"))) bail("no links here");
  unusable(in_base("link"), "a link to one", "a link to a folder");
  unusable(in_base("link/"), "a link to one", "a link with a slash");
  unusable(in_base("link/./"), "a link to one", "a link with more behind it");
  unusable(in_base("dangling"), "a link to one", "a link to nowhere");
  unusable(in_base("dangling/x"), "cannot be opened or made", "a folder in a link to nowhere");
  is_int(mode_of(in_base("absent")), 0, "  is not made");
  snprintf(path, sizeof path, "%s//.///", good);
  qn_jit_cache *spelled = open_cache(path);
  ok(is_hit(spelled, "key"), "slashes at the end do not matter");
  is_str(qn_jit_cache_dir(spelled), good, "  and are dropped");
  qn_jit_cache_close(spelled);
  snprintf(path, sizeof path, "%s", in_base("link"));
  strcat(path, "/sub//folder");
  spelled = open_cache(path);
  put(spelled, "key", "check", "value");
  ok(is_hit(spelled, "key"), "a link on the way is followed");
  qn_jit_cache_close(spelled);

  chmod(good, 0702);
  unusable(good, "others may write to it", "a folder that all may write to");
  chmod(good, 0720);
  unusable(good, "others may write to it", "a folder that a group may write to");
  is_int(n_files(good, ".qkc"), 1, "  clear has left it alone");
  chmod(good, 0755);
  ok(is_hit(cache, "key"), "a folder that all may read is used");
  struct dirent *item = NULL;
  DIR *listed = opendir(good);
  while (listed && (item = readdir(listed)) && !strstr(item->d_name, ".qkc")) continue;
  if (!item) bail("no entry");
  snprintf(path, sizeof path, "%s/%.80s", good, item->d_name);
  closedir(listed);
  static const struct { mode_t mode; const char *who; } writers[] = {{0606, "all"}, {0620, "a group"}};
  for (int i = 0; i < 2; i++) {
    chmod(path, writers[i].mode);
    ok(!is_hit(cache, "key"), "an entry that %s may write to is not loaded", writers[i].who);
  }
  chmod(path, 0644);
  ok(is_hit(cache, "key"), "  one that all may read is");
  char other_name[320];
  snprintf(other_name, sizeof other_name, "%s.hard", good);
  if (link(path, other_name)) bail("no hard link");
  ok(!is_hit(cache, "key"), "an entry with another name elsewhere is not loaded");
  unlink(other_name);
  if (geteuid() == 0) {
    if (chown(path, 65534, 65534)) bail("no chown");
    ok(!is_hit(cache, "key"), "another user's entry is not loaded");
    if (chown(path, 0, 0)) bail("no chown");
  }
  ok(is_hit(cache, "key"), "  without them it is");
  if (geteuid() == 0) {
    if (chown(good, 65534, 65534)) bail("no chown");
    unusable(good, "another user", "another user's folder");
    if (chown(good, 0, 0)) bail("no chown");
  } else {
    unusable("/usr", "another user", "another user's folder");
  }
  qn_jit_cache_close(cache);
}

static int in_read_only(void) {
  char folder[220], path[240];
  snprintf(folder, sizeof folder, "%s.other", base);
  snprintf(path, sizeof path, "%s/cache", folder);
  if (mkdir(folder, 0700)) return 1;
  if (geteuid() == 0 && (chown(folder, 65534, 65534) || setgid(65534) || setuid(65534))) return 2;
  qn_jit_cache *cache = open_cache(path);
  put(cache, "key", "check", "value");
  if (!is_hit(cache, "key") || n_said) return 3;
  chmod(path, 0500);
  for (int i = 0; i < 3; i++) put(cache, "another", "check", "value");
  if (is_hit(cache, "another") || n_said != 1 || !strstr(said, "cannot be written to (Permission denied)")) return 4;
  if (!is_hit(cache, "key") || qn_jit_cache_failure(cache)[0]) return 5;
  chmod(path, 0);
  if (is_hit(cache, "key") || n_said != 1 || !qn_jit_cache_failure(cache)[0]) return 6;
  chmod(path, 0700);
  forget();
  qn_jit_cache_close(cache);
  chmod(folder, 0500);
  snprintf(path, sizeof path, "%s/new/cache", folder);
  cache = open_cache(path);
  put(cache, "key", "check", "value");
  put(cache, "key", "check", "value");
  if (is_hit(cache, "key") || n_said != 1 || !strstr(said, "(Permission denied)")) return 7;
  return 0;
}

/* Files may have no more than 5000 bytes, and then no more can be opened. */
static int in_limits(void) {
  static char value[10000];
  char path[220];
  struct rlimit size = {5000, 5000}, few;
  snprintf(path, sizeof path, "%s/limits", base);
  qn_jit_cache *cache = open_cache(path);
  put(cache, "key", "check", "value");
  if (setrlimit(RLIMIT_FSIZE, &size)) return 1;
  for (int i = 0; i < 3; i++) qn_jit_cache_put(cache, "large", 5, "", 0, value, sizeof value);
  if (is_hit(cache, "large") || n_said != 1 || !strstr(said, "File too large")) return 2;
  if (!is_hit(cache, "key") || n_files(path, "") != 1) return 3;
  forget();
  if (getrlimit(RLIMIT_NOFILE, &few)) return 4;
  const rlim_t kept = few.rlim_cur;
  for (rlim_t n = 3; n < 40; n++) { /* none, one, two */
    few.rlim_cur = n;
    if (setrlimit(RLIMIT_NOFILE, &few)) return 5;
    put(cache, "key", "check", "value");
    is_hit(cache, "key");
    qn_jit_cache_list(cache, NULL, NULL);
  }
  few.rlim_cur = kept;
  if (setrlimit(RLIMIT_NOFILE, &few)) return 6;
  if (qn_jit_cache_failure(cache)[0]) return 7; /* it may pass, and has */
  if (!is_hit(cache, "key")) return 8;
  return 0;
}

static void set_or_unset(const char *name, const char *value) {
  if (value) {
    setenv(name, value, 1);
  } else {
    unsetenv(name);
  }
}

static void chosen(const char *own, const char *cache_home, const char *home, const char *wanted) {
  set_or_unset("QUERN_CACHE_DIR", own);
  set_or_unset("XDG_CACHE_HOME", cache_home);
  set_or_unset("HOME", home);
  qn_jit_cache *cache = open_cache(NULL);
  is_str(qn_jit_cache_dir(cache), wanted, "QUERN_CACHE_DIR=%s XDG_CACHE_HOME=%s HOME=%s", own ? own : "",
         cache_home ? cache_home : "", home ? home : "");
  qn_jit_cache_close(cache);
}

static void test_environment(void) {
  const char *kept_home = getenv("HOME");
  char home[300];
  snprintf(home, sizeof home, "%s", kept_home ? kept_home : "/");
  chosen("/a/b", "/c", "/d", "/a/b");
  chosen(NULL, "/c", "/d", "/c/quern");
  chosen("", "/c/", "/d", "/c//quern");
  chosen(NULL, NULL, "/d", "/d/.cache/quern");
  chosen("none", "/c", "/d", "");
  unusable(NULL, NULL, "QUERN_CACHE_DIR=none");
  chosen("rel", "/c", "/d", "rel");
  unusable(NULL, "not absolute", "QUERN_CACHE_DIR is relative");
  chosen(NULL, "rel", "/d", "rel/quern");
  unusable(NULL, "not absolute", "XDG_CACHE_HOME is relative");
  chosen(NULL, NULL, NULL, "");
  unusable(NULL, "HOME are not set", "none of them is set");
  chosen(NULL, NULL, in_base("home"), in_base("home/.cache/quern"));
  qn_jit_cache *cache = open_cache(NULL);
  put(cache, "key", "check", "value");
  ok(is_hit(cache, "key"), "a home without a cache gets one");
  qn_jit_cache_close(cache);
  chosen("/nowhere", NULL, NULL, "/nowhere");
  cache = open_cache(in_base("home/.cache/quern"));
  ok(is_hit(cache, "key"), "what the host says comes first");
  qn_jit_cache_close(cache);
  unsetenv("QUERN_CACHE_DIR");
  setenv("HOME", home, 1);
}

/* ---- Use, eviction, clearing ---- */

static void test_use(void) {
  char folder[300], path[400];
  snprintf(folder, sizeof folder, "%s", in_base("use"));
  qn_jit_cache *cache = open_cache(folder);
  put(cache, "key", "check", "value");
  snprintf(path, sizeof path, "%s", entry_path(folder, "key"));
  set_age(path, 7200);
  is_hit(cache, "another");
  get(cache, "key", "chuck");
  ok(age_of(path) >= 7200, "a miss is no use of an entry");
  is_hit(cache, "key");
  ok(age_of(path) < 60, "a hit is noted in the entry's time");
  set_age(path, 1800);
  is_hit(cache, "key");
  ok(age_of(path) >= 1800, "  once in an hour");
  set_age(path, -86400);
  is_hit(cache, "key");
  ok(age_of(path) > -60 && age_of(path) < 60, "  also if its time is to come");
  qn_jit_cache_close(cache);
}

static void make_large(const char *path, long age, off_t size) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, size) || close(fd)) bail("%s cannot be made", path);
  set_age(path, age);
}

static void test_eviction(void) {
  const char *names[] = {"e0", "e1", "e2", "e3", "e4", "e5"};
  const off_t large = (off_t)60 << 20; /* of nothing: the files have holes */
  char folder[300], key[40], left[20] = "";
  snprintf(folder, sizeof folder, "%s", in_base("eviction"));
  mkdir(folder, 0700);
  for (int i = 0; i < 4; i++) make_large(entry_path(folder, names[i]), 1000 + 10 * i, large);
  make_large(in_base("eviction/foreign"), 9000, large);
  make_large(in_base("eviction/put-1-2-3.tmp"), 4000, 10);
  make_large(in_base("eviction/put-1-2-4.tmp"), 3000, 10);
  make_large(in_base("eviction/put-x.tmp"), 4000, 10);
  qn_jit_cache *cache = open_cache(folder);
  put(cache, "p0", "check", "value");
  is_int(n_files(folder, ".qkc"), 5, "below the limit nothing goes");
  is_int(mode_of(in_base("eviction/put-1-2-3.tmp")), 0, "but what a writer has left an hour ago");
  ok(mode_of(in_base("eviction/put-1-2-4.tmp")), "  not what may be being written");
  ok(mode_of(in_base("eviction/put-x.tmp")), "  nor what is not ours");
  make_large(entry_path(folder, names[4]), 2000, large);
  for (int i = 1; i < 64; i++) {
    snprintf(key, sizeof key, "p%d", i);
    put(cache, key, "check", "value");
  }
  is_int(n_files(folder, ".qkc"), 5 + 64, "above it nothing goes before the 65th put");
  put(cache, "p64", "check", "value");
  for (int i = 0; i < 5; i++) strcat(left, mode_of(entry_path(folder, names[i])) ? "x" : "-");
  is_str(left, "xxx--", "then the oldest go, down to three quarters"); /* 3 and 4 are 1030 and 2000 seconds old */
  is_int(n_files(folder, ".qkc"), 3 + 65, "  and no others");
  for (int i = 0; i < 65; i++) {
    snprintf(key, sizeof key, "p%d", i);
    if (!is_hit(cache, key)) fail("%s is gone", key);
  }
  qn_jit_cache_close(cache);
  make_large(entry_path(folder, names[3]), 3000, large);
  make_large(entry_path(folder, names[5]), 5, large);
  cache = open_cache(folder);
  put(cache, "p0", "check", "new");
  is_int(mode_of(entry_path(folder, names[3])), 0, "another object's first put looks as well");
  ok(mode_of(entry_path(folder, names[5])) && is_hit(cache, "p0"), "  the newest stay");
  ok(mode_of(in_base("eviction/foreign")), "  foreign files stay");
  is_int(n_said, 0, "  nothing is said of it (%s)", said);
  qn_jit_cache_close(cache);
}

typedef struct listing {
  int n, seen, bad;
} listing;

static void count_entry(void *arg, const qn_cache_item *e) {
  listing *l = arg;
  l->n++;
  if (e->key_size == 4 && memcmp(e->key, "key", 3) == 0) l->seen |= 1 << (e->key[3] - '0');
  if (e->bytes < 60 || e->bytes > 200 || e->used < time(NULL) - 100 || e->used > time(NULL) + 100) l->bad++;
}

static void test_clear(void) {
  const char *foreign[] = {"notes.txt",
                           "abc.qkc",
                           "0123456789ABCDEF0123456789ABCDEF.qkc",
                           "0123456789abcdef0123456789abcdef.qkc.old",
                           "0123456789abcdef0123456789abcdef.txt",
                           "put-.tmp",
                           "put-1.tmp.bak",
                           "output.tmp"};
  const int n_foreign = sizeof foreign / sizeof *foreign;
  char folder[300], key[40];
  snprintf(folder, sizeof folder, "%s", in_base("clear"));
  qn_jit_cache *cache = open_cache(folder);
  for (int i = 0; i < 5; i++) {
    snprintf(key, sizeof key, "key%d", i);
    put(cache, key, "check", "value");
  }
  for (int i = 0; i < n_foreign; i++) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, foreign[i]);
    write_bytes(path, "x", 1);
  }
  write_bytes(in_base("clear/put-12-3-4.tmp"), "x", 1);
  write_bytes(in_base("clear/0123456789abcdef0123456789abcdef.qkc"), "x", 1);
  mkdir(in_base("clear/ffffffffffffffffffffffffffffffff.qkc"), 0700);
  listing l = {0};
  errno = 77;
  is_int(qn_jit_cache_list(cache, count_entry, &l), 5, "five sound entries are listed");
  ok(l.n == 5 && l.seen == 31 && l.bad == 0, "  each once, with key, size and time");
  is_int(qn_jit_cache_clear(cache), 6, "clear removes them, and the one that is not sound");
  is_int(errno, 77, "  errno is kept");
  is_int(n_files(folder, ""), n_foreign + 1, "  foreign files and a folder stay, what writers have left goes");
  is_int(qn_jit_cache_clear(cache) + qn_jit_cache_list(cache, NULL, NULL), 0, "  nothing is left to clear or list");
  put(cache, "key0", "check", "value");
  ok(is_hit(cache, "key0"), "  and it is filled anew");
  qn_jit_cache_close(cache);
}

int main(void) {
  const char *temporary = getenv("TMPDIR");
  umask(022);
  snprintf(base, sizeof base, "%s/quern-t510.XXXXXX",
           temporary && *temporary && strlen(temporary) < 150 ? temporary : "/tmp");
  if (!mkdtemp(base)) bail("no folder %s", base);
  const int before = n_descriptors();
  test_basics();
  test_damage();
  test_processes();
  test_killed();
  test_threads();
  test_folders();
  is_int(in_child(in_read_only), 0, "a folder that is read-only: one warning, and what is in it is a hit");
  is_int(in_child(in_limits), 0, "files too large for the host's limit, and no descriptors: misses");
  test_environment();
  test_use();
  test_eviction();
  test_clear();
  is_int(n_descriptors(), before, "no descriptor is left open");
  char other[240];
  snprintf(other, sizeof other, "%s.other", base);
  chmod(other, 0700);
  remove_all(other);
  remove_all(base);
  return done_testing();
}
