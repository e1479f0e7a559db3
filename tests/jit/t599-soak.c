/* SPDX-License-Identifier: Apache-2.0
 * tags: threads-full long
 *
 * t599-soak: hosts that go on: each compiles expressions, calls them and the library's ops, lets code be evicted, loads specs, makes
 * and releases contexts, forks, and shares a disk cache with the others, which one of them clears, while limits on files, address
 * space and the sizes of files change. Not a byte is wrong, no host ends early, and memory, maps and descriptors do not grow.
 * QUERN_SOAK_SECONDS (6) and QUERN_SOAK_HOSTS (2): tests/soak.sh runs eight for half an hour, and keeps the table. */
#include <malloc.h>
#include <signal.h>
#include <sys/resource.h>

#include "expressions.h"

enum { N_LIVE = 24, N_TEXTS = 150, N_SAMPLES = 20, MOST = 5000, MOST_HOSTS = 16 };

static double seconds = 6;
static int n_hosts = 2;

/* ---- What is computed ---- */

static float x_data[MOST], w_data[MOST];

/* Expression i: the same text in every host. */
static void text_of(int i, char *text, size_t size) {
  static const char *const steps[] = {"(%s * %d.5 + w)", "exp(-abs(%s) * 0.%d)", "maximum(%s, w - %d)", "tanh(%s / %d)", "(%s < w ? %d : x)",
                                      "sqrt(abs(%s) + %d)", "(%s - x * 0.%d)"};
  char inner[900] = "x", outer[900];
  unsigned h = (unsigned)i * 2654435761u;
  for (int k = 0; k < 3 + i % 4; k++) {
    h = h * 1664525u + 1013904223u;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(outer, sizeof outer, steps[(h >> 8) % 7], inner, 1 + (int)((h >> 16) % 90));
#pragma GCC diagnostic pop
    memcpy(inner, outer, sizeof inner);
  }
  snprintf(text, size, i % 5 ? "%s + w * 0" : "sum(%s + w * 0, axis=-1)", inner);
}

static quern_status call_it(quern_op *op, int is_sum, int64_t n, float *out) {
  int64_t one = 1, shape[1] = {n};
  const DLTensor base = {NULL, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, NULL, 0};
  DLTensor x = base, w = base, y = base, *in[2] = {&x, &w}, *outs[1] = {&y};
  x.data = x_data;
  w.data = w_data;
  y.data = out;
  if (is_sum) y.ndim = 0, y.shape = &one;
  return quern_op_call(op, 2, in, 1, outs, NULL);
}

/* ---- A host ---- */

typedef struct sample {
  double at;
  long vm_kb, rss_kb, heap_kb, maps, fds, threads;
  long n_calls, n_refused, n_compiled, n_specs, n_forks, n_contexts, n_wrong;
} sample;

typedef struct live {
  quern_op *op, *plain; /* plain: interpreted */
  int is_sum;
} live;

static sample now_at;
static int is_limited;

static long entries_of(const char *path) {
  long n = 0;
  DIR *folder = opendir(path);
  for (struct dirent *entry; folder && (entry = readdir(folder));) n += entry->d_name[0] != '.';
  if (folder) closedir(folder);
  return n - 1; /* its own */
}

static void measure(double start) {
  FILE *f = fopen("/proc/self/statm", "r");
  long pages = 0, resident = 0;
  char line[4096];
  if (f && fscanf(f, "%ld %ld", &pages, &resident) == 2) now_at.rss_kb = resident * 4, now_at.vm_kb = pages * 4;
  if (f) fclose(f);
  now_at.maps = 0;
  if ((f = fopen("/proc/self/maps", "r"))) {
    while (fgets(line, sizeof line, f)) now_at.maps++;
    fclose(f);
  }
  now_at.heap_kb = (long)(mallinfo2().uordblks / 1024);
  now_at.fds = entries_of("/proc/self/fd");
  now_at.threads = entries_of("/proc/self/task") + 1;
  now_at.at = (now_ms() - start) / 1e3;
}

static void wrong(const char *what) {
  now_at.n_wrong++;
  fprintf(stderr, "# wrong: %s\n", what);
}

/* A call of both, byte by byte; a refusal only where a limit is in force. */
static void compare(const live *l, int64_t n) {
  static float got[MOST], wanted[MOST];
  memset(got, 0x11, sizeof got);
  memset(wanted, 0x22, sizeof wanted);
  const quern_status a = call_it(l->op, l->is_sum, n, got), b = call_it(l->plain, l->is_sum, n, wanted);
  now_at.n_calls += 2;
  if (a || b) {
    now_at.n_refused++;
    if (!is_limited) wrong(quern_last_error());
    return;
  }
  if (memcmp(got, wanted, sizeof *got * (size_t)(l->is_sum ? 1 : n)) != 0) wrong("the bytes of an expression");
}

static void set_limit(int which, rlim_t soft) {
  struct rlimit limit;
  getrlimit(which, &limit);
  limit.rlim_cur = soft < limit.rlim_max ? soft : limit.rlim_max;
  setrlimit(which, &limit);
}

static void limit_something(rng *r, int on, const struct rlimit *first) {
  static const int limits[3] = {RLIMIT_NOFILE, RLIMIT_FSIZE, RLIMIT_AS};
  is_limited = on;
  for (int k = 0; k < 3; k++) set_limit(limits[k], first[k].rlim_cur);
  if (!on) return;
  switch (rng_below(r, 4)) {
    case 0: set_limit(RLIMIT_NOFILE, (rlim_t)now_at.fds + 1); break;
    case 1: set_limit(RLIMIT_NOFILE, (rlim_t)now_at.fds + 4); break;
    case 2: set_limit(RLIMIT_FSIZE, 1024); break;
    default: set_limit(RLIMIT_AS, (rlim_t)now_at.vm_kb * 1024 + (rlim_t)rng_below(r, 64) * 1024 * 1024);
  }
}

static int in_fork(const live *l) {
  static float got[MOST], wanted[MOST];
  if (call_it(l->op, l->is_sum, 1000, got) || call_it(l->plain, l->is_sum, 1000, wanted)) return 3;
  return memcmp(got, wanted, sizeof *got * (l->is_sum ? 1u : 1000u)) ? 2 : 0;
}

static void fork_one(const live *l) {
  const pid_t pid = fork();
  if (pid == 0) _exit(in_fork(l));
  if (pid < 0) {
    if (!is_limited) wrong("no child");
    return;
  }
  now_at.n_forks++;
  for (double start = now_ms();; sleep_ms(1)) {
    int status;
    if (waitpid(pid, &status, WNOHANG) == pid) {
      if (!WIFEXITED(status) || (WEXITSTATUS(status) && !(is_limited && WEXITSTATUS(status) == 3))) wrong("a child's result");
      return;
    }
    if (now_ms() - start > 60000) {
      kill(pid, SIGKILL);
      waitpid(pid, &status, 0);
      wrong("a child hangs");
      return;
    }
  }
}

static void use_spec(rng *r, const char *cache) {
  char text[600];
  static float got[MOST], wanted[MOST];
  snprintf(text, sizeof text, "op \"soak.f\" { doc = \"d\", inputs = \"x, w\", dtypes = floating, body = [[ T t = x * %d + w; return t / (1 + abs(t)); ]] }\n"
                              "row \"soak.g\" { doc = \"d\", dtypes = floating, body = [[ x - mean(x) * %d ]] }", (int)rng_below(r, 40), (int)rng_below(r, 40));
  quern_ctx *ctx[2] = {NULL, NULL};
  quern_op *op[2] = {NULL, NULL};
  const int is_derived = (int)rng_below(r, 2); /* made when it is asked for */
  for (int k = 0; k < 2; k++) {
    const quern_options options = {.size = sizeof options, .jit = k ? QUERN_JIT_OFF : QUERN_JIT_SYNC, .threads = 2, .cache_dir = cache};
    quern_status status = quern_ctx_create(&options, &ctx[k]);
    if (!status) status = quern_spec_load_text(ctx[k], "soak.lua", text, strlen(text));
    if (!status) status = is_derived ? quern_op_compile(ctx[k], "grad(soak.f(x, w), x) + w", &op[k]) : quern_op_find(ctx[k], "soak.f", &op[k]);
    if (status && !is_limited) wrong(quern_last_error());
    if (status) now_at.n_refused++;
    else now_at.n_specs++;
  }
  if (op[0] && op[1]) {
    const quern_status a = call_it(op[0], 0, 700, got), b = call_it(op[1], 0, 700, wanted);
    if ((a || b) && !is_limited) wrong(quern_last_error());
    if (!a && !b && memcmp(got, wanted, 700 * sizeof *got) != 0) wrong("the bytes of a spec's op");
  }
  for (int k = 0; k < 2; k++) {
    quern_op_release(op[k]);
    quern_ctx_release(ctx[k]);
  }
  now_at.n_contexts += 2;
}

static void host_main(int host, int pipe, const char *cache) {
  rng r;
  live all[N_LIVE] = {{0}};
  struct rlimit first[3];
  char text[1200];
  const double start = now_ms();
  signal(SIGXFSZ, SIG_IGN);
  getrlimit(RLIMIT_NOFILE, &first[0]);
  getrlimit(RLIMIT_FSIZE, &first[1]);
  getrlimit(RLIMIT_AS, &first[2]);
  rng_seed(&r, (uint64_t)host);
  for (int k = 0; k < MOST; k++) {
    x_data[k] = (float)(rng_unit(&r) * 8 - 4);
    w_data[k] = (float)(rng_unit(&r) * 2 - 1);
  }
  const quern_options kept = {.size = sizeof kept, .jit = QUERN_JIT_ASYNC, .threads = 2, .cache_dir = cache, .kernel_memory_limit = 1 << 18};
  const quern_options waits = {.size = sizeof waits, .jit = QUERN_JIT_SYNC, .threads = 2, .cache_dir = cache, .kernel_memory_limit = 1 << 18};
  quern_ctx *async = ctx_with(kept), *sync = ctx_with(waits), *plain = ctx_of(QUERN_JIT_OFF);
  measure(start);
  int n_sent = 0;
  for (long round = 0;; round++) {
    const double at = (now_ms() - start) / 1e3;
    if (at >= seconds * (n_sent + 1) / N_SAMPLES) {
      limit_something(&r, 0, first);
      measure(start);
      if (write(pipe, &now_at, sizeof now_at) != sizeof now_at) _exit(4);
      if (++n_sent == N_SAMPLES) break;
    }
    live *l = &all[rng_below(&r, N_LIVE)];
    if (!l->op || rng_below(&r, 6) == 0) {
      const int i = (int)rng_below(&r, N_TEXTS);
      text_of(i, text, sizeof text);
      quern_op_release(l->op);
      quern_op_release(l->plain);
      *l = (live){NULL, NULL, i % 5 == 0};
      if (quern_op_compile(rng_below(&r, 2) ? sync : async, text, &l->op) || quern_op_compile(plain, text, &l->plain)) {
        if (!is_limited) wrong(quern_last_error());
        quern_op_release(l->op);
        *l = (live){0};
        continue;
      }
      now_at.n_compiled++;
    }
    compare(l, 1 + (int64_t)rng_below(&r, MOST));
    if (round % 40 == 20) limit_something(&r, 1, first);
    if (round % 40 == 30) limit_something(&r, 0, first);
    if (round % 60 == 7) fork_one(l);
    if (round % 90 == 11) use_spec(&r, cache);
    if (round % 210 == 13) { /* contexts that come and go, one while it compiles */
      quern_ctx *mine = NULL;
      quern_op *op = NULL;
      if (quern_ctx_create(&kept, &mine) && !is_limited) wrong(quern_last_error());
      if (!mine) {
        now_at.n_refused++;
        continue;
      }
      text_of((int)rng_below(&r, N_TEXTS), text, sizeof text);
      static float out[MOST];
      if (!quern_op_compile(mine, text, &op)) call_it(op, strncmp(text, "sum", 3) == 0, 100, out);
      quern_op_release(op);
      quern_ctx_release(mine);
      now_at.n_contexts++;
    }
    if (host == 0 && round % 5000 == 4999 && quern_cache_clear(sync, NULL)) wrong(quern_last_error());
  }
  for (int k = 0; k < N_LIVE; k++) {
    quern_op_release(all[k].op);
    quern_op_release(all[k].plain);
  }
  quern_ctx_release(async);
  quern_ctx_release(sync);
  quern_ctx_release(plain);
  _exit(now_at.n_wrong ? 1 : 0);
}

/* ---- The table ---- */

static sample samples[MOST_HOSTS][N_SAMPLES];

/* The largest of a figure over some samples of a host. */
static long largest(int host, int from, int to, size_t offset) {
  long most = 0;
  for (int k = from; k < to; k++) {
    long figure;
    memcpy(&figure, (const char *)&samples[host][k] + offset, sizeof figure);
    if (figure > most) most = figure;
  }
  return most;
}

static void check_growth(const char *name, size_t offset, double factor, long slack) {
  group_begin("%s: the last third against the middle", name);
  for (int h = 0; h < n_hosts; h++) {
    const long middle = largest(h, N_SAMPLES / 3, 2 * N_SAMPLES / 3, offset), last = largest(h, 2 * N_SAMPLES / 3, N_SAMPLES, offset);
    group_count(1);
    if ((double)last > (double)middle * factor + (double)slack) group_fail("host %d: %ld, then %ld", h, middle, last);
  }
  group_end();
}

int main(void) {
  const char *text = getenv("QUERN_SOAK_SECONDS"), *hosts = getenv("QUERN_SOAK_HOSTS");
  char cache[] = "/tmp/quern-soak-XXXXXX", command[100];
  int pipes[MOST_HOSTS];
  pid_t pids[MOST_HOSTS];
  if (text) seconds = atof(text);
  if (hosts) n_hosts = atoi(hosts) < MOST_HOSTS ? atoi(hosts) : MOST_HOSTS;
  if (SANITIZED) skip_all("a sanitizer needs more address space than is left to it");
  forget_environment();
  if (!mkdtemp(cache)) bail("no folder");
  rng r;
  rng_seed(&r, 0); /* says the seed, which the hosts then do not */
  fflush(stdout);
  for (int h = 0; h < n_hosts; h++) {
    int both[2];
    if (pipe(both)) bail("no pipe");
    pids[h] = fork();
    if (pids[h] == 0) {
      close(both[0]);
      host_main(h, both[1], cache);
    }
    close(both[1]);
    pipes[h] = both[0];
  }
  for (int k = 0; k < N_SAMPLES; k++) {
    sample sum = {0};
    int n_read = 0;
    for (int h = 0; h < n_hosts; h++) {
      sample *s = &samples[h][k];
      size_t got = 0;
      for (ssize_t n; got < sizeof *s && (n = read(pipes[h], (char *)s + got, sizeof *s - got)) > 0;) got += (size_t)n;
      n_read += got == sizeof *s;
      sum.n_calls += s->n_calls, sum.n_compiled += s->n_compiled, sum.n_forks += s->n_forks, sum.n_specs += s->n_specs;
      sum.n_refused += s->n_refused, sum.n_wrong += s->n_wrong, sum.n_contexts += s->n_contexts;
      if (s->rss_kb > sum.rss_kb) sum.rss_kb = s->rss_kb;
      if (s->heap_kb > sum.heap_kb) sum.heap_kb = s->heap_kb;
      if (s->maps > sum.maps) sum.maps = s->maps;
      if (s->fds > sum.fds) sum.fds = s->fds;
      if (s->threads > sum.threads) sum.threads = s->threads;
    }
    if (k == 0) diag("| s | RSS, MB | heap, MB | maps | descriptors | threads | calls | expressions | specs | contexts | forks | refused | wrong |");
    if (n_read == n_hosts)
      diag("| %.0f | %.1f | %.1f | %ld | %ld | %ld | %ld | %ld | %ld | %ld | %ld | %ld | %ld |", seconds * (k + 1) / N_SAMPLES,
           (double)sum.rss_kb / 1024, (double)sum.heap_kb / 1024, sum.maps, sum.fds, sum.threads, sum.n_calls, sum.n_compiled, sum.n_specs,
           sum.n_contexts, sum.n_forks, sum.n_refused, sum.n_wrong);
  }
  group_begin("hosts end well, without a wrong byte");
  for (int h = 0; h < n_hosts; h++) {
    int status = 0;
    waitpid(pids[h], &status, 0);
    group_count(samples[h][N_SAMPLES - 1].n_calls ? samples[h][N_SAMPLES - 1].n_calls : 1);
    if (!WIFEXITED(status) || WEXITSTATUS(status)) group_fail("host %d: status %x", h, (unsigned)status);
  }
  group_end();
  /* While it is short, much is still being met for the first time. */
  const double ease = seconds < 120 ? 1.5 : 1.05;
  check_growth("resident memory", offsetof(sample, rss_kb), ease, 4096);
  check_growth("heap", offsetof(sample, heap_kb), ease, 2048);
  check_growth("maps", offsetof(sample, maps), ease, 20);
  check_growth("descriptors", offsetof(sample, fds), 1, 1);
  check_growth("threads", offsetof(sample, threads), 1, 1);
  snprintf(command, sizeof command, "rm -rf %s", cache);
  if (system(command)) diag("%s is left", cache);
  return done_testing();
}
