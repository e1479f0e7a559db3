/* SPDX-License-Identifier: Apache-2.0
 * tags: memory threads
 *
 * t520: a C compiler of the host's choice. GCC and Clang make kernels of the built ones' bits for each level; what
 * programs that are no compilers do is told; nothing is left behind, and nothing of the host changes or is handed on. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/core/base/kernel_abi.h"
#include "runtime/toolchain/jit_cc.h"
#include "runtime/toolchain/object_loader.h"
#include "mul_add.h"
#include "tap.h"

static char folder[64], why[1024];

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int compile(const char *cc, const char *text, qn_isa isa, qn_bytes *object) {
  const qn_compile_request request = {text, strlen(text), isa, 0, 0};
  strcpy(why, "nothing was said");
  *object = (qn_bytes){NULL, 0};
  return qn_cc_compile(cc, &request, object, why, sizeof why);
}

/* How many folders of a process's compiles there are. */
static int n_left(pid_t pid) {
  int n = 0;
  char mine[40];
  DIR *list = opendir("/tmp");
  snprintf(mine, sizeof mine, "quern-%ld-", (long)pid);
  for (const struct dirent *entry; list && (entry = readdir(list));)
    n += strncmp(entry->d_name, mine, strlen(mine)) == 0;
  if (list) closedir(list);
  return n;
}

static int n_files(void) {
  int n = 0;
  DIR *list = opendir("/proc/self/fd");
  while (list && readdir(list)) n++;
  if (list) closedir(list);
  return n;
}

/* A program that is a shell script. */
static const char *script(const char *name, const char *text) {
  static char path[200];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  if (!file || fprintf(file, "#!/bin/sh\n%s\n", text) < 0 || fclose(file) || chmod(path, 0700))
    bail("%s cannot be written", path);
  return path;
}

/* ---- Compilers ---- */

static const char mul_add[] =
    KERNEL_HEAD
    "static const f32 table[4] __attribute__((aligned(64))) = {0, 1, 2, 3};\n"
    "void mul_add(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {\n"
    "  Q_KERNEL_ENTRY;\n"
    "  (void)stride, (void)params;\n"
    "  const i64 n0 = n[0];\n"
    "  const char *row_a = ptr[0], *row_b = ptr[1], *row_c = ptr[2];\n"
    "  char *row_out = ptr[3];\n"
    "  Q_IVDEP\n"
    "  for (i64 i = 0; i < n0; i++) {\n"
    "    const f32 t = q_fma_f32(((const f32_u *)row_a)[i], ((const f32_u *)row_b)[i], table[i & 3]);\n"
    "    ((f32_u *)row_out)[i] = q_canon_f32(t + ((const f32_u *)row_c)[i]);\n"
    "  }\n"
    "}\n" KERNEL_TAIL;

static int mul_add_works(const char *cc, qn_isa isa) {
  static const float table[4] = {0, 1, 2, 3};
  qn_bytes object;
  return compile(cc, mul_add, isa, &object) && mul_add_is_right(object, table, why, sizeof why);
}

static void test_compiler(const char *cc) {
  char identity[2048], again[2048];
  qn_bytes object;
  if (!qn_cc_identity(cc, identity, sizeof identity)) {
    skip(1, "%s is not installed", cc);
    return;
  }
  ok(strncmp(identity, "cc /", 4) == 0, "%s: %s", cc, identity);
  ok(qn_cc_identity(cc, again, sizeof again) && !strcmp(identity, again), "  does not change");
  ok(!qn_cc_identity(cc, again, 10), "  does not fit in 10 bytes");
  const int files = n_files();
  for (int isa = QN_ISA_GENERIC; isa <= (int)qn_isa_machine(); isa++) {
    const double start = now_ms();
    errno = 77;
    const int good = mul_add_works(cc, (qn_isa)isa);
    ok(good && errno == 77, "  %s: a kernel, %.0f ms%s%s", qn_isa_name((qn_isa)isa), now_ms() - start, good ? "" : ": ",
       good ? "" : why);
  }
  for (int isa = QN_ISA_V2; isa < QN_ISA_COUNT; isa++) {
    static const char *const macros[] = {"", "__SSE4_2__", "__F16C__", "__AVX512VL__"};
    char text[400];
    snprintf(
        text, sizeof text, "#if !defined(%s) || %s\n#error macros\n#endif\nint k(void) { return __STDC_HOSTED__; }\n",
        macros[isa],
        isa < QN_ISA_V4 ? (isa < QN_ISA_V3 ? "defined(__AVX__)" : "defined(__AVX512F__)") : "defined(__AVX512VNNI__)");
    ok(compile(cc, text, (qn_isa)isa, &object), "  %s is what it is: %s", qn_isa_name((qn_isa)isa),
       object.data ? "" : why);
    free(object.data);
  }
  ok(!compile(cc, KERNEL_HEAD "\nint k(void) { return nonsense; }\n" KERNEL_TAIL, QN_ISA_V3, &object) && !object.data,
     "  an error");
  ok(strncmp(why, "kernel.c:4:", 11) == 0 && strstr(why, "nonsense"), "  is quoted: %s", why);
  ok(!compile(cc, "#include <stdint.h>\n#error so not\n", QN_ISA_V3, &object) && strstr(why, "so not"), "  #error: %s",
     why);
  is_int(n_files(), files, "  no file stays open");
  is_int(n_left(getpid()), 0, "  no folder is left");
}

/* ---- What is no compiler ---- */

static void test_others(void) {
  qn_bytes object;
  char identity[300], other[300];
  ok(!compile("no-such-compiler-xyz", mul_add, QN_ISA_V3, &object) && strstr(why, "no-such-compiler-xyz"),
     "no such program: %s", why);
  ok(!qn_cc_identity("no-such-compiler-xyz", identity, sizeof identity), "  which has none");
  ok(!compile("", mul_add, QN_ISA_V3, &object) && !compile("/tmp", mul_add, QN_ISA_V3, &object),
     "nor is nothing, or a folder");
  ok(!compile(script("exits", "echo warned >&2; echo x.c:1:1: error: wrong >&2; exit 3"), mul_add, QN_ISA_V3,
              &object) &&
         !strcmp(why, "x.c:1:1: error: wrong"),
     "one that exits: %s", why);
  ok(!compile(script("silent", "exit 3"), mul_add, QN_ISA_V3, &object) && strstr(why, "exits with status 3"),
     "without a word: %s", why);
  ok(!compile(script("killed", "kill -SEGV $$"), mul_add, QN_ISA_V3, &object) && strstr(why, "killed by signal 11"),
     "one that crashes: %s", why);
  ok(!compile(script("lazy", "exit 0"), mul_add, QN_ISA_V3, &object) && strstr(why, "kernel.o"),
     "one that does nothing: %s", why);
  ok(!compile(script("empty", "for last; do :; done; : > \"$last\""), mul_add, QN_ISA_V3, &object) &&
         strstr(why, "0 bytes"),
     "an empty object: %s", why);
  ok(!compile(script("talks",
                     "i=0; while [ $i -lt 3000 ]; do echo 'a line of much length that says nothing' >&2; i=$((i + 1)); "
                     "done; exit 1"),
              mul_add, QN_ISA_V3, &object) &&
         strstr(why, "a line of"),
     "one that talks");
  ok(compile(script("junk", "for last; do :; done; echo junk > \"$last\""), mul_add, QN_ISA_V3, &object) &&
         object.size == 5,
     "junk is the loader's");
  free(object.data);
  static const struct {
    const char *name, *text, *words;
  } kinds[] = {{"pipes", "for last; do :; done; mkfifo \"$last\"", "something else than a file"},
               {"folders", "for last; do :; done; mkdir \"$last\"", "something else than a file"},
               {"links", "for last; do :; done; ln -s /dev/zero \"$last\"", "left no"},
               {"nests", "for last; do :; done; mkdir -p \"$last/a/b\"; : > \"$last/a/b/c\"", "something else than a file"}};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    ok(!compile(script(kinds[i].name, kinds[i].text), mul_add, QN_ISA_V3, &object) && strstr(why, kinds[i].words),
       "one that makes something else, %s: %s", kinds[i].name, why);
  ok(!compile(script("text", "exit 0\n"), mul_add, QN_ISA_V3, &object), "a program without work");

  const char *changes = script("changes", "exit 0");
  ok(qn_cc_identity(changes, identity, sizeof identity), "%s", identity);
  script("changes", "exit 0 # longer");
  ok(qn_cc_identity(changes, other, sizeof other) && strcmp(identity, other) != 0,
     "  another program is another identity");
  is_int(n_left(getpid()), 0, "no folder is left");
}

/* What a compiler has started and not waited for holds its standard error open. */
static void test_leftovers(void) {
  static const struct {
    const char *name, *text, *words;
  } rows[] = {
      {"is silent, and leaves a child", "sleep 45 & exit 3", "exits with status 3"},
      {"says why, and leaves a child", "echo x.c:1:1: error: wrong >&2; sleep 45 & exit 3", "x.c:1:1: error: wrong"},
      {"leaves a child that talks", "(while sleep 0.001; do echo again; done) >&2 & exit 3", ""},
      {"does its work, and leaves a child", "for last; do :; done; echo junk > \"$last\"; sleep 45 & exit 0", NULL},
  };
  char text[300], path[100];
  snprintf(path, sizeof path, "%s/left", folder);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    qn_bytes object;
    snprintf(text, sizeof text, "echo $$ > %s; %s", path, rows[i].text);
    const char *program = script("leaves", text);
    const double start = now_ms();
    const int is_good = compile(program, mul_add, QN_ISA_V3, &object);
    const double took = now_ms() - start;
    ok(took < 20000 && is_good == !rows[i].words && (is_good || strstr(why, rows[i].words)),
       "one that %s: %.0f ms: %s", rows[i].name, took, is_good ? "" : why);
    free(object.data);
    FILE *file = fopen(path, "r");
    int pid = 0;
    if (file && fscanf(file, "%d", &pid) == 1 && pid > 1) kill(-pid, SIGKILL); /* its group */
    if (file) fclose(file);
  }
}

/* What a compiler is given: written to a file by one that is none; signals by its successor, for a shell blocks them now and
 * then. */
static void test_surroundings(void) {
  char text[400], path[100], line[4096];
  int has_arg = 0, n_fds = 0, has_secret = 0, has_temporary = 0, masked = -1;
  qn_bytes object;
  snprintf(path, sizeof path, "%s/seen", folder);
  snprintf(text, sizeof text,
           "{ printf 'arg %%s\\n' \"$@\"; env; ls /proc/$$/fd >\"$0.fds\"; sed 's/^/fd /' \"$0.fds\"; " /* a pipe would be a file */
           "exec grep '^Sig[BI]' /proc/self/status; } > %s; exit 1",
           path);
  setenv("QUERN_TEST_SECRET", "1", 1);
  const int leak = dup(1); /* without FD_CLOEXEC */
  sigset_t some, kept;
  sigemptyset(&some);
  sigaddset(&some, SIGINT);
  pthread_sigmask(SIG_BLOCK, &some, &kept);
  signal(SIGPIPE, SIG_IGN);
  compile(script("looks", text), mul_add, QN_ISA_V4, &object);
  signal(SIGPIPE, SIG_DFL);
  pthread_sigmask(SIG_SETMASK, &kept, NULL);
  close(leak);
  FILE *seen = fopen(path, "r");
  while (seen && fgets(line, sizeof line, seen)) {
    unsigned long long bits;
    has_arg |= strcmp(line, "arg -mprefer-vector-width=512\n") == 0;
    has_secret |= strstr(line, "QUERN_TEST_SECRET") != NULL;
    has_temporary |= strncmp(line, "TMPDIR=/tmp/quern-", 18) == 0;
    n_fds +=
        strncmp(line, "fd ", 3) == 0 && atoi(line + 3) > 2 && atoi(line + 3) < 10; /* a shell keeps its script above */
    if (sscanf(line, "SigBlk: %llx", &bits) == 1) masked = bits != 0;
    if (sscanf(line, "SigIgn: %llx", &bits) == 1) masked |= (bits & 1ull << (SIGPIPE - 1)) != 0;
  }
  if (seen) fclose(seen);
  ok(has_arg, "the level's flags are arguments");
  ok(!has_secret && has_temporary, "few variables are handed on; temporary files go into the folder");
  is_int(n_fds, 0, "no file is");
  is_int(masked, 0, "no signal is blocked or ignored");

  /* Where PATH says the working directory, or nothing. */
  char *path_before = strdup(getenv("PATH") ? getenv("PATH") : "");
  script("here-cc", "exit 0");
  if (chdir(folder)) bail("no folder");
  setenv("PATH", ":.:", 1);
  ok(!compile("here-cc", mul_add, QN_ISA_V3, &object) && strstr(why, "no program"),
     "no compiler comes from the working directory");
  snprintf(text, sizeof text, "nowhere:%s", folder);
  setenv("PATH", text, 1);
  ok(!compile("here-cc", mul_add, QN_ISA_V3, &object) && strstr(why, "kernel.o"), "but from a folder of PATH");
  setenv("PATH", path_before, 1);
  free(path_before);
  if (chdir("/")) bail("no /");

  /* A host that does not want to hear of children. */
  signal(SIGCHLD, SIG_IGN);
  ok(mul_add_works("cc", qn_isa_machine()), "a host that ignores SIGCHLD");
  signal(SIGCHLD, SIG_DFL);
}

/* ---- Threads and exits ---- */

#if !defined(__SANITIZE_THREAD__) /* it does not let a forked child start threads */
static void *many(void *bad) {
  for (int i = 0; i < 2; i++) {
    char said[200];
    qn_bytes object;
    const qn_compile_request request = {mul_add, sizeof mul_add - 1, QN_ISA_V3, 0, 0};
    if (!qn_cc_compile("cc", &request, &object, said, sizeof said)) __atomic_fetch_add((int *)bad, 1, __ATOMIC_RELAXED);
    else free(object.data);
  }
  return NULL;
}

static void *never_ends(void *cc) {
  char said[200];
  qn_bytes object;
  const qn_compile_request request = {mul_add, sizeof mul_add - 1, QN_ISA_V3, 0, 0};
  qn_cc_compile(cc, &request, &object, said, sizeof said);
  _exit(strstr(said, "the process ends") ? 0 : 5);
}

/* What a library's destructor that waits for a compile does. */
static pthread_t compiling;
__attribute__((destructor(101))) static void wait_for_it(void) {
  if (compiling) pthread_join(compiling, NULL);
}

static void test_life(void) {
  pthread_t threads[4];
  int bad = 0, status = -1;
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, many, &bad);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  is_int(bad, 0, "4 threads at once");
  is_int(n_left(getpid()), 0, "no folder is left");

  const char *sleeps = script("sleeps", "sleep 30 & wait");
  fflush(stdout);
  const pid_t pid = fork();
  if (pid == 0) {
    if (!freopen("/dev/null", "w", stdout)) _exit(9);
    pthread_create(&compiling, NULL, never_ends, (void *)(uintptr_t)sleeps);
    usleep(200000);
    exit(0);
  }
  const double start = now_ms();
  waitpid(pid, &status, 0);
  ok(status == 0 && now_ms() - start < 2000, "a process that exits kills its compiler: %.0f ms, status %d",
     now_ms() - start, status);
  is_int(n_left(pid), 0, "no folder is left");
}
#endif

/* The first compile of a process removes what killed processes have left, an hour ago; no other folder. */
static void test_killed(void) {
  const pid_t gone = fork();
  if (gone == 0) _exit(0);
  waitpid(gone, NULL, 0);
  const struct timespec old[2] = {{time(NULL) - 3600, 0}, {time(NULL) - 3600, 0}};
  char left[3][64], file[300];
  snprintf(left[0], sizeof left[0], "/tmp/quern-%ld-aBcDeF", (long)gone);
  snprintf(left[1], sizeof left[1], "/tmp/quern-%ld-aBcDeF", (long)getpid());
  snprintf(left[2], sizeof left[2], "/tmp/quern-%ld-aBcDeFg", (long)gone);
  for (int i = 0; i < 3; i++) {
    mkdir(left[i], 0700);
    snprintf(file, sizeof file, "%s/kernel.c", left[i]);
    fclose(fopen(file, "w"));
    utimensat(AT_FDCWD, left[i], old, 0);
  }
  const pid_t pid = fork();
  if (pid == 0) {
    qn_bytes object;
    compile("cc", mul_add, QN_ISA_V2, &object);
    _exit(0);
  }
  waitpid(pid, NULL, 0);
  ok(access(left[0], F_OK) != 0, "the folder of a killed process is removed");
  ok(access(left[1], F_OK) == 0 && access(left[2], F_OK) == 0, "no other is");
  char command[300];
  snprintf(command, sizeof command, "rm -rf %s %s %s", left[0], left[1], left[2]);
  if (system(command)) diag("something is left");
}

int main(void) {
  strcpy(folder, "/tmp/quern-t520-XXXXXX");
  if (!mkdtemp(folder)) bail("no temporary folder");
#if !defined(__x86_64__)
  skip_all("the object loader is for x86-64 only");
#endif
  test_killed();
  test_compiler("gcc");
  test_compiler("clang-19");
  test_compiler("cc");
  test_others();
  test_leftovers();
  test_surroundings();
#if defined(__SANITIZE_THREAD__)
  skip(4, "ThreadSanitizer does not let a forked child start threads");
#else
  test_life();
#endif
  char command[100];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  if (system(command)) diag("%s is left", folder);
  return done_testing();
}
