/* SPDX-License-Identifier: Apache-2.0
 *
 * jit_cc.c: runs a C compiler without a shell; see jit_cc.h.
 *
 * Source, headers and object are in a folder that only this user can enter, made for one compile and removed after it.
 * The compiler gets a fixed list of arguments and a few environment variables, but none of the host's open files, signal
 * settings or process group. It is killed after a minute, or when the process ends. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* mkdtemp, posix_spawn_file_actions_addclosefrom_np */
#endif
#include "toolchain/jit_cc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/threads/clock.h"
#include "base/jit_environment.h"
#include "toolchain/kernel_headers.h"
#include "level_flags.h" /* generated */
#include "base/threads/idle.h"
#include "base/threads/transient.h"
#include "base/files/read_all.h"
#include "base/files/write_all.h"
#include "core/base/kernel_abi.h"

#define MOST_MS 60000
#define LOOK_MS 20            /* the interval at which is_ending is polled */
#define MOST_LAST_WORDS 32    /* a pipe's room is 64 KB; a read takes 4 */
#define MOST_OBJECT (64 << 20)
#define PATH_BYTES 4096

static atomic_int is_ending; /* the process exits, or the library is unloaded */

__attribute__((destructor)) static void end_compiles(void) {
  atomic_store(&is_ending, 1);
}

/* ---- Arguments ---- */

/* GCC and Clang accept all of these. Flags that repeat the headers' pragmas are here for the speed of the code. The last rows
 * are for the object loader: code without a global offset table, and no extra sections. */
static const char *const common_flags[] = {
  "-std=gnu11", "-ffreestanding", "-w", "-DQ_NO_PACK", "-DNDEBUG",
  "-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "--param=max-tree-if-conversion-phi-args=64",
  "-fpie", "-fvisibility=hidden", "-fno-jump-tables", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables",
  "-fno-stack-protector", "-g0", NULL,
};
/* ORDER ISA */
static const char *const level_flags[] = {QN_FLAGS_GENERIC, QN_FLAGS_V2, QN_FLAGS_V3, QN_FLAGS_V4};
_Static_assert(sizeof level_flags / sizeof level_flags[0] == QN_ISA_COUNT, "flags for each level");

/* ---- Words and files ---- */

/* Writes a message that ends with the text of errno. Returns 0. */
static int say(char *why, size_t size, const char *what, const char *path) {
  qn_transient_note(errno);
  snprintf(why, size, "%s %s: %m", what, path);
  return 0;
}

static int write_file(const char *folder, const char *name, const char *text, size_t size, char *why, size_t why_size) {
  char path[PATH_BYTES];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  int failed = file < 0 ? errno : qn_write_all(file, text, size);
  if (file >= 0 && close(file) && !failed) failed = errno;
  errno = failed;
  return failed ? say(why, why_size, "cannot write", path) : 1;
}

/* Reads the object. The program may have left any kind of file there: links are not followed, FIFOs are not waited for. */
static int read_object(const char *path, qn_bytes *object, char *why, size_t why_size) {
  const int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  struct stat about;
  char *data = NULL;
  size_t done = 0, size = 0;
  if (file < 0 || fstat(file, &about)) {
    say(why, why_size, "the compiler left no", path);
  } else if (!S_ISREG(about.st_mode)) {
    snprintf(why, why_size, "the compiler left something else than a file: %s", path);
  } else if (about.st_size <= 0 || about.st_size > MOST_OBJECT || !(data = malloc((size_t)about.st_size + 1))) {
    snprintf(why, why_size, "the compiler's object has %lld bytes, or there is no memory for it",
             (long long)about.st_size);
  } else {
    size = (size_t)about.st_size;
    done = qn_read_all(file, data, size);
    if (done < size) say(why, why_size, "cannot read", path);
  }
  if (file >= 0) close(file);
  if (!data || done < size) {
    free(data);
    return 0;
  }
  data[size] = 0;
  *object = (qn_bytes){data, size};
  return 1;
}

/* nftw's callback: removes one item. */
static int remove_item(const char *path, const struct stat *status, int type, struct FTW *place) {
  (void)status, (void)type, (void)place;
  remove(path);
  return 0;
}

/* Removes the folder and all that the compiler left in it. */
static void remove_folder(const char *folder) { nftw(folder, remove_item, 8, FTW_DEPTH | FTW_PHYS); }

/* Removes folders that processes of this user left when they were killed: their names have the process's number. */
static void remove_stale_folders(void) {
  static atomic_int is_done;
  if (atomic_exchange(&is_done, 1)) return;
  DIR *all = opendir("/tmp");
  char path[64];
  struct stat about;
  for (const struct dirent *item; all && (item = readdir(all));) {
    long pid;
    int end = 0;
    if (sscanf(item->d_name, "quern-%9ld-%n", &pid, &end) != 1 || strlen(item->d_name) != (size_t)end + 6 || end == 0) continue;
    if (pid <= 0 || kill((pid_t)pid, 0) == 0 || errno != ESRCH) continue;
    snprintf(path, sizeof path, "/tmp/%.40s", item->d_name);
    if (lstat(path, &about) == 0 && S_ISDIR(about.st_mode) && about.st_uid == geteuid() && time(NULL) - about.st_mtime > MOST_MS / 1000)
      remove_folder(path);
  }
  if (all) closedir(all);
}

/* ---- The program ---- */

static int is_program(const char *path) {
  struct stat file;
  return stat(path, &file) == 0 && S_ISREG(file.st_mode) && access(path, X_OK) == 0;
}

/* The path of a program as a shell finds it, but without PATH's entries for the working directory; malloc'ed. NULL: not
 * found. */
static char *find_program(const char *cc) {
  const char *folders = strchr(cc, '/') ? "" : qn_environment_path();
  if (!folders) folders = "/usr/local/bin:/usr/bin:/bin";
  const size_t size = strlen(folders) + strlen(cc) + 2;
  char *path = malloc(size);
  if (path) memcpy(path, cc, strlen(cc) + 1);
  int is_found = path && strchr(cc, '/') && is_program(path);
  while (path && !is_found && cc[0] && *folders) {
    const int length = (int)strcspn(folders, ":");
    snprintf(path, size, "%.*s/%s", length, folders, cc);
    is_found = folders[0] == '/' && is_program(path);
    folders += length + (folders[length] == ':');
  }
  if (is_found) return path;
  free(path);
  return NULL;
}

/* ---- The child ---- */

typedef struct child {
  pid_t pid;
  int words; /* its output: the reading end of a pipe */
  char said[4096];
  size_t n_said;
} child;

static int start(child *c, const char *program, char *const args[], char *const variables[]) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  sigset_t signals;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC)) return errno;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  int error = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  if (!error) error = posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
  if (!error) error = posix_spawn_file_actions_adddup2(&files, ends[1], 2);
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 34)
  if (!error) error = posix_spawn_file_actions_addclosefrom_np(&files, 3);
#else
  for (int fd = 3; !error && fd < 1024; fd++) error = posix_spawn_file_actions_addclose(&files, fd);
#endif
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigfillset(&signals);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  if (!error) error = posix_spawn(&c->pid, program, &files, &attributes, args, variables);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  close(ends[1]);
  c->words = ends[0];
  if (error) close(ends[0]);
#if defined(__linux__)
  /* Should this process be killed, the compiler does not go on for ever. */
  if (!error) prlimit(c->pid, RLIMIT_CPU, &(const struct rlimit){MOST_MS / 1000, MOST_MS / 1000 + 1}, NULL);
#endif
  return error;
}

/* Reads the child's output, waiting up to `ms`. 1: read something; 0: nothing so far; -1: end of the output. */
static int listen(child *c, int ms) {
  char rest[4096];
  struct pollfd words = {.fd = c->words, .events = POLLIN};
  if (poll(&words, 1, ms) <= 0) return 0;
  const int has_room = c->n_said < sizeof c->said - 1;
  const ssize_t n = has_room ? read(c->words, c->said + c->n_said, sizeof c->said - 1 - c->n_said)
                             : read(c->words, rest, sizeof rest);
  if (has_room && n > 0) c->n_said += (size_t)n;
  return n > 0 || (n < 0 && errno == EINTR) ? 1 : -1;
}

/* Waits for the child's end. 1: it succeeded, or its status is unknown because the host has reaped it. */
static int await(child *c, int32_t most_ms, char *why, size_t why_size) {
  const int64_t until = qn_clock_ms() + most_ms;
  int talks = 1, status = 0;
  pid_t ended = 0;
  for (int64_t looked = qn_clock_ms(); ended == 0 && !atomic_load(&is_ending) && qn_clock_ms() < until;) {
    if (qn_clock_ms() - looked >= 500) {
      qn_idle_poll();
      looked = qn_clock_ms();
    }
    if (talks)
      talks = listen(c, LOOK_MS) >= 0;
    else
      poll(NULL, 0, 1);
    ended = waitpid(c->pid, &status, WNOHANG);
  }
  if (ended == 0) {
    kill(-c->pid, SIGKILL);
    while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (atomic_load(&is_ending)) snprintf(why, why_size, "the process ends");
    else if (most_ms % 1000) snprintf(why, why_size, "the compiler was not done after %d ms", (int)most_ms);
    else snprintf(why, why_size, "the compiler was not done after %d s", (int)most_ms / 1000);
  }
  /* The rest of its output. Processes that it started may still write to the pipe; they are not waited for. */
  for (int i = 0; i < MOST_LAST_WORDS && listen(c, 0) > 0; i++) {
  }
  close(c->words);
  c->said[c->n_said] = 0;
  if (ended == 0) return 0;
  if (ended > 0 && (!WIFEXITED(status) || WEXITSTATUS(status))) {
    snprintf(why, why_size,
             WIFEXITED(status) ? "the compiler exits with status %d" : "the compiler was killed by signal %d",
             WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    return 0;
  }
  return 1;
}

/* Copies the first error of the compiler's output to `why`, without the folder's name; leaves `why` if there is no output. */
static void quote(const child *c, const char *folder, char *why, size_t why_size) {
  const char *line = c->said, *at;
  for (at = c->said; *at; at += strcspn(at, "\n"), at += *at == '\n') {
    const char *error = strstr(at, "error: ");
    if (error && error < at + strcspn(at, "\n")) {
      line = at;
      break;
    }
  }
  const size_t length = strcspn(line, "\n"), prefix = strlen(folder);
  const int is_prefixed = strncmp(line, folder, prefix) == 0 && line[prefix] == '/';
  const size_t skipped = is_prefixed ? prefix + 1 : 0;
  if (length > skipped) snprintf(why, why_size, "%.*s", (int)(length - skipped), line + skipped);
}

/* ---- One compile ---- */

static int fill_folder(const char *folder, const qn_compile_request *request, char *why, size_t why_size) {
  for (int32_t i = 0; i < qn_n_kernel_headers; i++) {
    const qn_kernel_header *header = &qn_kernel_headers[i];
    if (!write_file(folder, header->name, header->text, strlen(header->text), why, why_size)) return 0;
  }
  return write_file(folder, "kernel.c", request->source, request->size, why, why_size);
}

/* NAME=value; 0 where it does not fit. */
static int set(char *variable, size_t size, const char *name, const char *value) {
  const int n = snprintf(variable, size, "%s=%s", name, value);
  return n > 0 && (size_t)n < size;
}

typedef struct two_variables {
  char path[PATH_BYTES + 8], home[PATH_BYTES + 8];
} two_variables;

static int run(const char *program, const char *folder, qn_isa isa, int32_t most_ms, char *why, size_t why_size) {
  const char *args[64], *path = qn_environment_path(), *home = qn_environment_home();
  char flags[sizeof QN_FLAGS_V4], *rest; /* the longest of them */
  char source[64], object[64], temporary[64];
  QN_IN_SCRATCH(two_variables, own);
  char *variables[5] = {"LC_ALL=C", temporary};
  int n = 0, n_variables = 2;
  child c = {.n_said = 0};
  snprintf(source, sizeof source, "%s/kernel.c", folder);
  snprintf(object, sizeof object, "%s/kernel.o", folder);
  set(temporary, sizeof temporary, "TMPDIR", folder);
  if (path && set(own->path, sizeof own->path, "PATH", path)) variables[n_variables++] = own->path;
  if (home && set(own->home, sizeof own->home, "HOME", home)) variables[n_variables++] = own->home;
  variables[n_variables] = NULL;
  args[n++] = program;
  for (const char *const *flag = common_flags; *flag; flag++) args[n++] = *flag;
  snprintf(flags, sizeof flags, "%s", level_flags[isa]);
  for (char *flag = strtok_r(flags, " ", &rest); flag; flag = strtok_r(NULL, " ", &rest)) args[n++] = flag;
  const char *const last[] = {"-I", folder, "-c", source, "-o", object, NULL};
  for (size_t i = 0; i < sizeof last / sizeof last[0]; i++) args[n++] = last[i];
  const int error = start(&c, program, (char *const *)(uintptr_t)args, variables); /* posix_spawn writes to none of them */
  if (error) {
    errno = error;
    return say(why, why_size, "cannot run", program);
  }
  if (await(&c, most_ms ? most_ms : MOST_MS, why, why_size)) return 1;
  quote(&c, folder, why, why_size);
  return 0;
}

int qn_cc_compile(const char *cc, const qn_compile_request *request, qn_bytes *object, char *why, size_t why_size) {
  const int kept_errno = errno;
  char path[64], folder[48], *program = find_program(cc);
  int is_good = 0;
  remove_stale_folders();
  snprintf(folder, sizeof folder, "/tmp/quern-%ld-XXXXXX", (long)getpid());
  if (!program) {
    snprintf(why, why_size, "there is no program %s", cc);
  } else if (!mkdtemp(folder)) {
    say(why, why_size, "cannot make a folder", folder);
  } else {
    snprintf(path, sizeof path, "%s/kernel.o", folder);
    is_good = fill_folder(folder, request, why, why_size) && run(program, folder, request->isa, request->most_ms, why, why_size) &&
              read_object(path, object, why, why_size);
    remove_folder(folder);
  }
  free(program);
  errno = kept_errno;
  return is_good;
}

int qn_cc_identity(const char *cc, char *text, size_t size) {
  const int kept_errno = errno;
  char *program = find_program(cc), *resolved = program ? realpath(program, NULL) : NULL;
  struct stat file;
  int n = -1;
  if (program && stat(program, &file) == 0)
    n = snprintf(text, size, "cc %s %lld %lld.%09ld", resolved ? resolved : program, (long long)file.st_size,
                 (long long)file.st_mtim.tv_sec, file.st_mtim.tv_nsec);
  free(resolved);
  free(program);
  errno = kept_errno;
  return n > 0 && (size_t)n < size;
}
