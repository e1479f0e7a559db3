/* SPDX-License-Identifier: Apache-2.0
 *
 * t700-cuda-primitives.c: every primitive and cast of templates/cuda/kernel_cuda.h, as builds for the CPU and as PTX. Run by
 * t700-cuda-primitives.sh, which names a folder of builds of cuda/primitives.cu (N-cuda-*.so), of kernel_subject.c (c.so) and
 * of what NVRTC made; with QUERN_TEST_GPU=1 that runs on the GPU, too. Cases and references are t010's: the C primitives are
 * held against the same ones, bit for bit. */
#define _GNU_SOURCE
#include <glob.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define main t010_main
#define truncate t010_truncate
#include "../kernels/t010-kernel-primitives.c"
#undef main
#undef truncate
#include "cuda/primitives_device.h"

typedef unsigned long long u64;
typedef void ternary(u64 a, u64 b, u64 c, u64 y, long long n);
typedef void copy(u64 a, u64 c, u64 y, long long n);
enum { N = 60000 };
static void *object_of[64];
static char x[3][N * 8], got[N * 8], wanted[N * 8];

static int is_device(int b) { return !object_of[b]; }

static void *symbol(int b, const char *name) {
  void *s = dlsym(object_of[b], name);
  if (!s) bail("%s", dlerror());
  return s;
}

/* What kernels spell as intrinsics, against C's own operators; NaN as in t010. */
static void check_intrinsic(const char *name, const dtype *t, rng *r) {
  static uint64_t special[40000];
  int n_special = special_values(t, special, 0), wide = t->bits == 64;
  for (int64_t i = 0; i < N; i++)
    for (int k = 0; k < 3; k++) store(x[k], i, t->bits, i & 3 ? random_value(r, t) : special[rng_u64(r) % (unsigned)n_special]);
  for (int64_t i = 0; i < N; i++) {
    uint64_t a = load(x[0], i, t->bits), b = load(x[1], i, t->bits), c = load(x[2], i, t->bits), y;
    volatile double d = f64_of(a) * f64_of(b);
    volatile float f = f32_of(a) * f32_of(b);
    if (!strncmp(name, "times_plus", 10)) y = wide ? of_f64(d + f64_of(c)) : of_f32(f + f32_of(c));
    else if (!strncmp(name, "times", 5)) y = wide ? of_f64(d) : of_f32(f);
    else if (!strncmp(name, "plus", 4)) y = wide ? of_f64(f64_of(a) + f64_of(b)) : of_f32(f32_of(a) + f32_of(b));
    else if (!strncmp(name, "minus", 5)) y = wide ? of_f64(f64_of(a) - f64_of(b)) : of_f32(f32_of(a) - f32_of(b));
    else if (!strncmp(name, "over", 4)) y = wide ? of_f64(f64_of(a) / f64_of(b)) : of_f32(f32_of(a) / f32_of(b));
    else if (!strncmp(name, "inverse", 7)) y = wide ? of_f64(1.0 / f64_of(a)) : of_f32(1.0f / f32_of(a));
    else if (!strncmp(name, "there", 5)) {
      const dtype *integer = dtype_of(wide ? "i64" : "i32");
      y = cast(integer, t, cast(t, integer, a));
    } else y = (uint64_t)((unsigned __int128)a * b >> t->bits);
    store(wanted, i, t->bits, y);
  }
  group_begin("%s", name);
  for (int b = 0; b < n_builds - 1; b++) { /* the last is C's */
    char full[80];
    snprintf(full, sizeof full, "run_%s", name);
    ternary *run;
    if (is_device(b)) device_run_named(full, 0, t->bits / 8, x[0], x[1], x[2], got, N);
    else *(void **)&run = symbol(b, full), run((u64)x[0], (u64)x[1], (u64)x[2], (u64)got, N);
    group_count(N);
    for (int64_t i = 0; i < N; i++) {
      uint64_t g = load(got, i, t->bits), w = load(wanted, i, t->bits);
      if (g == w || (t->kind == 'f' && is_a_nan(t, g) && is_a_nan(t, w))) continue;
      group_fail("%s: case %lld: 0x%llx and 0x%llx, 0x%llx: got 0x%llx, wanted 0x%llx", builds[b].path, (long long)i,
                 (u64)load(x[0], i, t->bits), (u64)load(x[1], i, t->bits), (u64)load(x[2], i, t->bits), (u64)g, (u64)w);
    }
  }
  group_end();
}

/* Vectors arrive turned round; an address that is not a multiple of their size stops the program, for loads and for stores (and
 * is not tried on a device). */
static const struct vector { const char *type; int size, n; } vectors[] = {
  {"u8", 1, 1}, {"u8", 1, 2}, {"u8", 1, 4}, {"u8", 1, 8}, {"u8", 1, 16}, {"u16", 2, 1}, {"u16", 2, 2}, {"u16", 2, 4}, {"u16", 2, 8},
  {"f32", 4, 1}, {"f32", 4, 2}, {"f32", 4, 4}, {"f64", 8, 1}, {"f64", 8, 2},
};
enum { N_VECTORS = sizeof vectors / sizeof vectors[0] };

static int aborts(copy *run, u64 a, u64 y) {
  int status;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    if (!freopen("/dev/null", "w", stderr)) _exit(2);
    signal(SIGABRT, SIG_DFL);
    run(a, 0, y, 1);
    _exit(0);
  }
  return waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void check_vectors(int b, rng *r) {
  _Alignas(16) static char from[2048], to[2048];
  group_begin("vectors: %s", builds[b].path);
  for (int v = 0; v < N_VECTORS; v++) {
    int bytes = vectors[v].size * vectors[v].n, n = 1024 / bytes;
    char name[64];
    copy *run = NULL;
    snprintf(name, sizeof name, "copy_%s_%d", vectors[v].type, vectors[v].n);
    if (!is_device(b)) *(void **)&run = symbol(b, name);
    for (size_t i = 0; i < sizeof from; i++) from[i] = (char)rng_u64(r);
    for (int streamed = 0; streamed < 2; streamed++) {
      memset(to, 0x5a, sizeof to);
      if (run) run((u64)(from + bytes), (u64)streamed, (u64)to, n);
      else device_run_named(name, 1, bytes, from + bytes, NULL, (void *)(uintptr_t)streamed, to, n);
      for (int i = 0; i < (int)sizeof to; i++) {
        int element = i % bytes / vectors[v].size, turned = (vectors[v].n - 1 - element) * vectors[v].size + i % vectors[v].size;
        char w = i < n * bytes ? from[bytes + i / bytes * bytes + turned] : 0x5a;
        group_count(1);
        if (to[i] != w) group_fail("%s: byte %d", name, i);
      }
    }
    for (int off = 1; run && off < bytes; off *= 2) {
      group_count(2);
      if (!aborts(run, (u64)(from + off), (u64)to)) group_fail("%s: takes a load %d bytes off", name, off);
      if (!aborts(run, (u64)from, (u64)(to + off))) group_fail("%s: takes a store %d bytes off", name, off);
    }
  }
  group_end();
}

/* ---- What NVRTC made ---- */

static char folder[3000];

static char *read_text(const char *name) { /* NULL: no such file */
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  char *text = calloc(1, 16 << 20);
  if (!text || fread(text, 1, (16 << 20) - 1, f) == 0) text[0] = 0;
  fclose(f);
  return text;
}

/* The kernel's text, from its name to the next kernel, in place; NULL where it is not. */
static char *kernel_of(char *ptx, const char *name) {
  char head[80];
  snprintf(head, sizeof head, ".entry %s(", name);
  char *at = strstr(ptx, head);
  if (!at) return NULL;
  char *end = strstr(at + 1, ".entry ");
  size_t size = end ? (size_t)(end - at) : strlen(at);
  char *text = calloc(1, size + 1);
  return text ? memcpy(text, at, size) : NULL;
}

static void wants(char *ptx, const char *kernel, const char *what) {
  char *text = kernel_of(ptx, kernel);
  group_count(1);
  if (!text || !strstr(text, what)) group_fail("%s: no %s", kernel, what);
  free(text);
}

static void check_ptx(const char *arch) {
  static const char *const never[] = {".ftz", ".approx", ".local", "call", "add.f", "sub.f", "mul.f", "div.f", "rcp.f", "sqrt.f"};
  char name[64], kernel[64], what[64];
  snprintf(name, sizeof name, "%s.error", arch);
  char *error = read_text(name);
  if (error) diag("%s", error);
  ok(!error, "NVRTC takes every primitive for %s", arch);
  if (error) return;
  snprintf(name, sizeof name, "%s.log", arch);
  char *log = read_text(name);
  is_str(log ? log : "no log", "", "without a word, for %s", arch);
  snprintf(name, sizeof name, "%s.ptx", arch);
  char *ptx = read_text(name);
  if (!ptx) bail("no %s", name);
  group_begin("PTX for %s", arch);
  for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) {
    char *at = strstr(ptx, never[i]);
    group_count(1);
    if (at) group_fail("%s: %.100s", never[i], at);
  }
  for (char *at = ptx; (at = strstr(at, "fma.rn")); at++) { /* only where fma was asked for */
    char *entry = ptx;
    for (char *next = ptx; (next = strstr(next + 1, ".entry ")) && next < at;) entry = next;
    group_count(1);
    if (strncmp(entry, ".entry run_fma_", 15)) group_fail("fma.rn in %.40s", entry);
  }
  for (int i = 0; i < 2; i++) {
    const char *f = i ? "f64" : "f32";
    static const char *const wanted_of[][2] = {
      {"times_plus", "mul.rn"}, {"times_plus", "add.rn"}, {"plus", "add.rn"}, {"minus", "sub.rn"}, {"over", "div.rn"}, {"inverse", "rcp.rn"},
      {"sqrt", "sqrt.rn"}, {"fma", "fma.rn"},
    };
    for (size_t k = 0; k < sizeof wanted_of / sizeof wanted_of[0]; k++) {
      snprintf(kernel, sizeof kernel, "run_%s_%s", wanted_of[k][0], f);
      snprintf(what, sizeof what, "%s.%s", wanted_of[k][1], f);
      wants(ptx, kernel, what);
    }
  }
  for (int v = 0; v < N_VECTORS; v++) {
    int bytes = vectors[v].size * vectors[v].n, word = vectors[v].size == 8 ? 8 : bytes < 4 ? bytes : 4, n = bytes / word;
    static const char *const accesses[] = {"ld.global.L1::no_allocate", "st.global", "st.global.cs"};
    snprintf(kernel, sizeof kernel, "copy_%s_%d", vectors[v].type, vectors[v].n);
    for (int i = 0; i < 3; i++) {
      if (n > 1) snprintf(what, sizeof what, "%s.v%d.b%d ", accesses[i], n, 8 * word);
      else snprintf(what, sizeof what, "%s.b%d ", accesses[i], 8 * word);
      wants(ptx, kernel, what);
    }
  }
  group_end();
  free(ptx), free(log);
}

int main(int argc, char **argv) {
  static const char *const architectures[] = {"sm_75", "sm_80", "sm_90", "sm_100"};
  static const char *const options[] = {"-use_fast_math", "-ftz=true"};
  if (argc != 2) skip_all("run t700-cuda-primitives.sh");
  snprintf(folder, sizeof folder, "%s", argv[1]);
  if (getenv("QUERN_TEST_SCALE")) scale = atoll(getenv("QUERN_TEST_SCALE"));
  glob_t found;
  char pattern[4096];
  snprintf(pattern, sizeof pattern, "%s/*.so", folder);
  if (glob(pattern, 0, NULL, &found)) bail("no builds in %s", folder); /* sorted: c.so comes last */
  for (size_t i = 0; i < found.gl_pathc && n_builds < 64; i++, n_builds++) {
    if (i == found.gl_pathc - 1 && getenv("QUERN_TEST_GPU") && *getenv("QUERN_TEST_GPU") == '1') { /* C's stays the last */
      const char *why;
      if ((builds[n_builds].s = device_subject(folder, &why))) builds[n_builds++].path = "the GPU";
      else fail("the GPU: %s", why);
    }
    if (!(object_of[n_builds] = dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_LOCAL))) bail("%s", dlerror());
    builds[n_builds].path = strrchr(found.gl_pathv[i], '/') + 1;
    builds[n_builds].s = symbol(n_builds, "kernel_subject");
  }
  rng r;
  rng_seed(&r, 700);
  for (int i = 0; i < (int)builds[0].s->n_loops; i++) check_loop(i, &r);
  static const char *const names[] = {"plus", "minus", "times", "over", "inverse", "times_plus", "there_and_back", "umulhi"};
  for (int i = 0; i < 8; i++)
    for (int wide = 0; wide < 2; wide++) {
      char name[64];
      const char *type = i < 7 ? wide ? "f64" : "f32" : wide ? "u64" : "u32";
      snprintf(name, sizeof name, "%s_%s", names[i], type);
      check_intrinsic(name, dtype_of(type), &r);
    }
  for (int b = 0; b < n_builds - 1; b++) check_vectors(b, &r);
  char *absent = read_text("absent");
  if (absent) {
    skip(4, "%.*s", (int)strcspn(absent, "\n"), absent);
    return done_testing();
  }
  for (int i = 0; i < 4; i++) {
    char name[64];
    snprintf(name, sizeof name, "%s.other", architectures[i]);
    if (!read_text(name)) check_ptx(architectures[i]);
  }
  for (int i = 0; i < 2; i++) {
    char name[64];
    snprintf(name, sizeof name, "refused%s", options[i]);
    ok(read_text(name), "the header refuses %s", options[i]);
  }
  return done_testing();
}
