/* SPDX-License-Identifier: Apache-2.0
 * tags: threads
 *
 * t520: Clang in process. Kernels that the generator writes, compiled for each level, are loaded and give the bits of
 * the built ones; errors are quoted; nothing of the host changes; threads, forks, exits and a fatal error of LLVM are
 * survived. */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/core/base/kernel_abi.h"
#include "runtime/toolchain/jit_clang.h"
#include "runtime/base/files/module.h"
#include "runtime/toolchain/object_loader.h"
#include "mul_add.h"
#include "tap.h"

#if defined(__SANITIZE_ADDRESS__)
#define IS_ASAN 1
#else
#define IS_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__)
#define IS_TSAN 1
#else
#define IS_TSAN 0
#endif
#define IS_SANITIZED (IS_ASAN || IS_TSAN)

/* LeakSanitizer asks this as a process exits. It cannot look at threads that are parked, or that a fork has lost. */
int __lsan_is_turned_off(void);
static int has_lost_threads;
int __lsan_is_turned_off(void) {
  return has_lost_threads;
}

/* ---- Sources ---- */

/* out = a * b + c, f32. */
static const char mul_add[] =
    KERNEL_HEAD
    "void mul_add(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {\n"
    "  Q_KERNEL_ENTRY;\n"
    "  (void)stride, (void)params;\n"
    "  const i64 n0 = n[0];\n"
    "  const char *row_a = ptr[0], *row_b = ptr[1], *row_c = ptr[2];\n"
    "  char *row_out = ptr[3];\n"
    "  Q_IVDEP\n"
    "  for (i64 i = 0; i < n0; i++) {\n"
    "    const f32 t = ((const f32_u *)row_a)[i] * ((const f32_u *)row_b)[i];\n"
    "    ((f32_u *)row_out)[i] = q_canon_f32(t + ((const f32_u *)row_c)[i]);\n"
    "  }\n"
    "}\n" KERNEL_TAIL;

/* A generated kernel's text, ready to compile; NULL if the generator has none of that name. */
static char *text_of(const char *kernel) {
  const char *source = getenv("QUERN_SOURCE_DIR");
  const size_t most = 1 << 20;
  char command[1200], *text = malloc(most);
  if (!text) bail("no memory");
  snprintf(command, sizeof command, "lua5.4 '%s/build.lua' show %s 2>/dev/null", source ? source : ".", kernel);
  FILE *pipe = popen(command, "r");
  size_t n = (size_t)snprintf(text, most, "%s", KERNEL_HEAD);
  n += fread(text + n, 1, most - n - 100, pipe);
  strcpy(text + n, KERNEL_TAIL);
  if (pclose(pipe) == 0) return text;
  free(text);
  return NULL;
}

static char why[1024];

static int compile(const char *text, qn_isa isa, qn_bytes *object) {
  const qn_compile_request request = {text, strlen(text), isa, 0, 0};
  strcpy(why, "nothing was said");
  *object = (qn_bytes){NULL, 0};
  return qn_clang_compile(&request, object, why, sizeof why);
}

/* Compiles, loads and runs mul_add on a few numbers. */
static int mul_add_works(void) {
  static const float nothing[4] = {0};
  char said[256];
  qn_bytes object;
  return compile(mul_add, qn_isa_machine(), &object) && mul_add_is_right(object, nothing, said, sizeof said);
}

/* ---- Children: what needs a process of its own ---- */

typedef struct report {
  int good, bad;
  char text[1000]; /* of the last that was bad, or what the child has to say */
} report;
static report *shared;

static void check(int good, const char *text) {
  if (good) {
    shared->good++;
  } else {
    shared->bad++;
    snprintf(shared->text, sizeof shared->text, "%s; why: %.800s", text, why);
  }
}

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Runs `body` in a child that ends by exit(0); its status, or -2 if it had to be killed. */
static int in_child(void (*body)(void)) {
  memset(shared, 0, sizeof *shared);
  fflush(stdout);
  const pid_t pid = fork();
  if (pid == 0) {
    if (!freopen("/dev/null", "w", stdout)) _exit(9); /* the parent's buffer is not ours to write */
    body();
    exit(0);
  }
  for (int i = 0; i < 60000; i++) {
    int status;
    if (waitpid(pid, &status, WNOHANG) == pid)
      return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status) - 1000;
    usleep(1000);
  }
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
  return -2;
}

static void child_is_fine(void (*body)(void), const char *name) {
  const int status = in_child(body);
  if (!ok(status == 0 && shared->bad == 0 && shared->good > 0, "%s", name)) {
    diag("status %d, %d checks, %d of them bad: %s", status, shared->good + shared->bad, shared->bad, shared->text);
  }
}

/* ---- The bits of built kernels ---- */

static const char *const kernels[] = {
    "qk_add_f32_f32_f32_2d_ccc",     "qk_gelu_f32_f32_1d_cc",          "qk_gelu_f64_f64_1d_cc",
    "qk_tanh_f32_f32_1d_cc",         "qk_pow_f64_f64_f64_1d_ccc",      "qk_log_f32_f32_1d_cc",
    "qk_maximum_f64_f64_f64_2d_ccc", "qk_multiply_i64_i64_i64_2d_ccc", "qk_less_f32_f32_bool_2d_ccc",
    "qk_pow_i32_i32_i32_1d_ccc",     "qk_sqrt_f64_f64_2d_cc",          "qk_fma_f32_f32_f32_f32_2d_cccc",
    "qk_clip_f32_f32_2d_cc",         "qk_leaky_relu_f64_f64_2d_cc"};

static const qn_variant *built(const char *name, const qn_builtin **op) {
  for (int32_t i = 0; i < qn_n_builtins; i++) {
    *op = &qn_builtins[i];
    for (int32_t k = 0; k < (*op)->n_variants; k++) {
      if (!strcmp((*op)->variants[k].name, name)) return &(*op)->variants[k];
    }
  }
  return NULL;
}

#define MOST_ITEMS 1111

/* Numbers of all kinds, and the special ones. */
static void fill(void *memory, size_t bytes, rng *r, int is_f32) {
  for (size_t i = 0; i < bytes / 8; i++) ((uint64_t *)memory)[i] = rng_u64(r);
  for (size_t i = 0; i < bytes / (is_f32 ? 4 : 8); i += 1 + rng_below(r, 3)) {
    static const double special[] = {0.0, -0.0, 1, -1, 1.0 / 0.0, -1.0 / 0.0, 0.0 / 0.0, 1e-310, 0.5};
    const double x = rng_below(r, 8) ? rng_unit(r) * 20 - 10 : special[rng_below(r, 9)];
    if (is_f32)
      ((float *)memory)[i] = (float)x;
    else
      ((double *)memory)[i] = x;
  }
}

/* The function of a level, or, in a build of one level, the only one: bits do not depend on levels. */
static qn_kernel *built_kernel(const qn_variant *variant, qn_isa isa) {
  return variant->fn[isa] ? variant->fn[isa] : variant->fn[QN_ISA_GENERIC];
}

/* Runs code beside the built kernel. */
static int same_bits(const qn_variant *variant, const qn_builtin *op, qn_isa isa, qn_kernel *code) {
  static uint64_t memory[5][MOST_ITEMS], wanted[MOST_ITEMS];
  static const int64_t sizes[] = {1, 7, 64, MOST_ITEMS};
  const int32_t n_in = op->info.n_in;
  uint64_t params[QN_MAX_PARAMS] = {0};
  char *ptr[5];
  int64_t stride[5][2];
  rng r;
  rng_seed(&r, 520);
  for (int32_t k = 0; k <= n_in; k++) {
    const int64_t bytes = qn_dtype_infos[variant->dtypes[k]].bits / 8;
    stride[k][0] = bytes;
    stride[k][1] = bytes * MOST_ITEMS;
    ptr[k] = (char *)memory[k];
    fill(memory[k], sizeof memory[k], &r, variant->dtypes[k] == QN_F32);
  }
  for (int i = 0; i < QN_MAX_PARAMS; i++) {
    const float f = (float)i - 0.5f;
    const double d = f;
    memcpy(&params[i], variant->dtypes[0] == QN_F32 ? (const void *)&f : (const void *)&d,
           variant->dtypes[0] == QN_F32 ? 4 : 8);
  }
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    const int64_t n[2] = {sizes[i], 1};
    memset(wanted, 0x5a, sizeof wanted);
    memset(memory[n_in], 0x5a, sizeof memory[n_in]);
    ptr[n_in] = (char *)wanted;
    built_kernel(variant, isa)(ptr, stride, n, params);
    ptr[n_in] = (char *)memory[n_in];
    code(ptr, stride, n, params);
    if (memcmp(wanted, memory[n_in], sizeof wanted)) return 0;
  }
  return 1;
}

/* An object has what the loader takes, and nothing beside it. */
static int is_lean(const qn_bytes *object, char *said, size_t size) {
  const Elf64_Ehdr *h = (const Elf64_Ehdr *)object->data;
  const Elf64_Shdr *sections = (const Elf64_Shdr *)(object->data + h->e_shoff);
  const char *names = object->data + sections[h->e_shstrndx].sh_offset;
  for (int i = 1; i < h->e_shnum; i++) {
    const char *name = names + sections[i].sh_name;
    const int is_known = !strncmp(name, ".text", 5) || !strncmp(name, ".rodata", 7) || !strcmp(name, ".note.GNU-stack");
    if ((sections[i].sh_flags & SHF_ALLOC) && !is_known) {
      snprintf(said, size, "section %s", name);
      return 0;
    }
    if (sections[i].sh_type == SHT_RELA) {
      const Elf64_Rela *r = (const Elf64_Rela *)(object->data + sections[i].sh_offset);
      for (size_t k = 0; k < sections[i].sh_size / sizeof *r; k++) {
        if (ELF64_R_TYPE(r[k].r_info) != R_X86_64_PC32 && ELF64_R_TYPE(r[k].r_info) != R_X86_64_PLT32) {
          snprintf(said, size, "a relocation of type %u", (unsigned)ELF64_R_TYPE(r[k].r_info));
          return 0;
        }
      }
    }
  }
  return 1;
}

static char *texts[sizeof kernels / sizeof kernels[0]];
static qn_isa level;

static void compare_kernels(void) {
  for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
    const qn_builtin *op = NULL;
    const qn_variant *variant = built(kernels[i], &op);
    union {
      void *address;
      qn_kernel *run;
    } entry;
    qn_bytes object;
    if (!variant || !built_kernel(variant, level) || !texts[i]) continue; /* not in this build */
    const int done = compile(texts[i], level, &object);
    check(done, kernels[i]);
    if (!done) continue;
    check(is_lean(&object, why, sizeof why), kernels[i]);
    qn_loaded *loaded = qn_object_load(object.data, object.size, kernels[i], why, sizeof why);
    check(loaded != NULL, kernels[i]);
    free(object.data);
    if (!loaded) continue;
    entry.address = qn_object_entry(loaded);
    check(same_bits(variant, op, level, entry.run), kernels[i]);
    qn_object_unload(loaded);
  }
}

static void test_bits(void) {
  int n = 0;
  for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) n += (texts[i] = text_of(kernels[i])) != NULL;
  if (n == 0) {
    skip(3, "build.lua shows no kernels: neither QUERN_SOURCE_DIR nor the working directory is the repository");
    return;
  }
  for (level = QN_ISA_V2; level <= QN_ISA_V4; level++) {
    if (level > qn_isa_machine()) {
      skip(1, "this machine does not run %s", qn_isa_name(level));
      continue;
    }
    char name[80];
    snprintf(name, sizeof name, "%s: kernels compiled in process give the built ones' bits", qn_isa_name(level));
    child_is_fine(compare_kernels, name);
    diag("%d checks", shared->good);
  }
  for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) free(texts[i]);
}

/* ---- Levels ---- */

/* What the compiler defines for a level is what its flags would have made it define. */
static void check_levels(void) {
  static const struct {
    const char *macro;
    qn_isa since;
  } rows[] = {{"__SSE2__", QN_ISA_GENERIC},     {"__SSE4_2__", QN_ISA_V2},
              {"__POPCNT__", QN_ISA_V2},        {"__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16", QN_ISA_V2},
              {"__AVX2__", QN_ISA_V3},          {"__FMA__", QN_ISA_V3},
              {"__F16C__", QN_ISA_V3},          {"__BMI__", QN_ISA_V3},
              {"__BMI2__", QN_ISA_V3},          {"__LZCNT__", QN_ISA_V3},
              {"__MOVBE__", QN_ISA_V3},         {"__AVX512F__", QN_ISA_V4},
              {"__AVX512BW__", QN_ISA_V4},      {"__AVX512CD__", QN_ISA_V4},
              {"__AVX512DQ__", QN_ISA_V4},      {"__AVX512VL__", QN_ISA_V4},
              {"__AVX512VNNI__", QN_ISA_COUNT}, {"__AVX512FP16__", QN_ISA_COUNT},
              {"__FAST_MATH__", QN_ISA_COUNT},  {"QN_ISA", QN_ISA_COUNT},
              {"__PIC__", QN_ISA_GENERIC},      {"__NO_MATH_ERRNO__", QN_ISA_GENERIC},
              {"Q_NO_PACK", QN_ISA_GENERIC},    {"__OPTIMIZE__", QN_ISA_GENERIC}};
  for (int isa = QN_ISA_GENERIC; isa < QN_ISA_COUNT; isa++) {
    char text[8192] = "#if __STDC_HOSTED__\n#error hosted\n#endif\n";
    qn_bytes object;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
      char row[200];
      snprintf(row, sizeof row, "#if%s %s\n#error %s at this level\n#endif\n",
               isa >= (int)rows[i].since ? "ndef" : "def", rows[i].macro, rows[i].macro);
      strcat(text, row);
    }
    strcat(text, "int k(void) { return 1; }\n");
    check(compile(text, (qn_isa)isa, &object), qn_isa_name((qn_isa)isa));
    free(object.data);
  }
}

/* ---- Errors ---- */

static void check_errors(void) {
  qn_bytes object;
  check(!compile(KERNEL_HEAD "\nint k(void) { return nonsense(1); }\n" KERNEL_TAIL, QN_ISA_V3, &object) && !object.data,
        "an unknown function");
  check(strstr(why, "kernel.c:4:") && strstr(why, "nonsense"), "  is named with its place");
  check(!compile("int k(void) { return 1 }\n", QN_ISA_V3, &object) && strstr(why, "kernel.c:1:23: expected ';'"),
        "a missing semicolon");
  check(!compile("\n#error so not\nint x = 1 +;\n", QN_ISA_V3, &object) && strstr(why, "kernel.c:2:2: so not"),
        "the first of two errors");
  check(!compile("#define __FAST_MATH__ 1\n" KERNEL_HEAD, QN_ISA_V3, &object) && strstr(why, "kernel.h:") &&
            strstr(why, "exact bits"),
        "an error in a header");
  check(!compile("#include <stdio.h>\n", QN_ISA_V3, &object) && strstr(why, "stdio.h"), "no system header is found");
  check(!compile("#include \"/etc/hostname\"\n", QN_ISA_V3, &object) && strstr(why, "not found"), "nor any file");
  check(!compile("int k(void) { __asm__(\"no such instruction\"); return 1; }\n", QN_ISA_V3, &object),
        "wrong assembly");
  check(!compile("}}})))", QN_ISA_V3, &object), "brackets without end");
  check(!compile("(((((({{{{{", QN_ISA_V3, &object), "or without beginning");
  check(compile("", QN_ISA_V3, &object), "an empty text is an empty object");
  free(object.data);
  char *deep = malloc(400000);
  if (!deep) bail("no memory");
  strcpy(deep, "int k(int x) { return ");
  memset(deep + strlen(deep), '(', 200000);
  strcpy(deep + 200000, ";}");
  check(!compile(deep, QN_ISA_V3, &object) && strstr(why, "nesting"), "200000 brackets");
  free(deep);
  check(mul_add_works(), "and the next one compiles");
  check(!strcmp(qn_clang_state(), "ready"), "ready");
}

/* The largest kernel that an expression can make: a chain of 4096 values. */
static void check_large(void) {
  const size_t most = 1 << 20;
  char *text = malloc(most);
  size_t n = 0;
  qn_bytes object;
  if (!text) bail("no memory");
  n += (size_t)snprintf(
      text, most, "%s",
      KERNEL_HEAD
      "void k(char *const *ptr, const i64 (*stride)[2], const i64 n[2], const void *params) {\n"
      "  Q_KERNEL_ENTRY;\n  (void)stride, (void)params;\n  const char *a = ptr[0];\n  char *out = ptr[1];\n"
      "  Q_IVDEP\n  for (i64 i = 0; i < n[0]; i++) {\n    const f32 t0 = ((const f32_u *)a)[i];\n");
  for (int i = 1; i < 4096; i++)
    n += (size_t)snprintf(text + n, most - n, "    const f32 t%d = t%d * t%d + %d.5f;\n", i, i - 1, i / 3, i);
  snprintf(text + n, most - n, "    ((f32_u *)out)[i] = t4095;\n  }\n}\n" KERNEL_TAIL);
  const double start = now_ms();
  check(compile(text, qn_isa_machine(), &object), "4096 values");
  snprintf(shared->text, sizeof shared->text, "%.0f ms, %zu bytes", now_ms() - start, object.size);
  free(object.data);
  free(text);
}

/* ---- The host ---- */

static int n_files(void) {
  int n = 0;
  DIR *list = opendir("/proc/self/fd");
  while (list && readdir(list)) n++;
  if (list) closedir(list);
  return n;
}

/* Whether a file is mapped that is neither a library nor what was mapped before. */
static int n_mapped_files(const char *except) {
  int n = 0;
  char line[1200];
  FILE *maps = fopen("/proc/self/maps", "r");
  if (!maps) bail("no /proc/self/maps");
  while (fgets(line, sizeof line, maps)) n += strchr(line, '/') && !strstr(line, except);
  fclose(maps);
  return n;
}

static int has_llvm(void) {
  char line[1200];
  int found = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  if (!maps) bail("no /proc/self/maps");
  while (fgets(line, sizeof line, maps)) found |= strstr(line, "libLLVM") || strstr(line, "quern-clang");
  fclose(maps);
  return found;
}

static void read_handlers(void (**handlers)(int)) {
  for (int s = 1; s < 32; s++) {
    struct sigaction action;
    handlers[s] = sigaction(s, NULL, &action) ? NULL : action.sa_handler;
  }
}

static void check_host(void) {
  static void (*before[32])(int), (*after[32])(int);
  sigset_t kept, now;
  char identity[2048], again[2048], folder[] = "/tmp/quern-t520-XXXXXX";
  check(!strcmp(qn_clang_state(), "not loaded yet"), "not loaded yet");
  check(qn_clang_identity(identity, sizeof identity), "an identity before the module is opened");
  check(strstr(identity, "quern-clang.so ") && strstr(identity, "libLLVM"), "  names the module and LLVM");
  check(!qn_clang_identity(again, 20), "  which does not fit in 20 bytes");
  check(!has_llvm(), "  which opens neither");
  if (!mkdtemp(folder) || chdir(folder)) bail("no temporary folder");
  FILE *said = freopen("said", "w+", stderr);
  sigemptyset(&kept);
  sigaddset(&kept, SIGUSR1);
  pthread_sigmask(SIG_SETMASK, &kept, NULL);
  read_handlers(before);
  const int files = n_files(), mapped = n_mapped_files(".so");
  const locale_t locale = uselocale((locale_t)0);
  fesetround(FE_UPWARD);
  errno = 77;
  check(mul_add_works() || (fesetround(FE_TONEAREST), mul_add_works()), "a kernel");
  check(errno == 77, "errno stays");
  check(fegetround() == FE_UPWARD, "the rounding mode stays");
  fesetround(FE_TONEAREST);
  check(uselocale((locale_t)0) == locale, "the locale stays");
  pthread_sigmask(SIG_SETMASK, NULL, &now);
  check(sigismember(&now, SIGUSR1) == 1 && sigismember(&now, SIGUSR2) == 0, "the signal mask stays");
  read_handlers(after);
  check(!memcmp(before, after, sizeof before), "no signal has a new handler");
  check(n_files() == files, "no file stays open");
  check(n_mapped_files(".so") == mapped, "no file is mapped but libraries");
  qn_bytes object;
  compile("int k(void) { return nonsense; }", QN_ISA_V3, &object);
  fflush(stderr);
  struct stat about;
  check(said && fstat(fileno(stderr), &about) == 0 && about.st_size == 0, "nothing is printed");
  DIR *list = opendir(".");
  int n = 0;
  while (list && readdir(list)) n++;
  if (list) closedir(list);
  check(n == 3, "no file is written");
  unlink("said");
  if (chdir("/") || rmdir(folder)) bail("the temporary folder stays");
  check(!strcmp(qn_clang_state(), "ready"), "ready");
  check(qn_clang_identity(again, sizeof again) && !strcmp(identity, again), "the identity stays");
}

/* What a compile makes does not depend on the caller's floating point environment. */
static void check_rounding(void) {
  qn_bytes one, other;
  static const char text[] = "double k(void) { return 1.0 / 3 + __builtin_sqrt(2.0) + 0.1; }\n";
  check(compile(text, QN_ISA_V3, &one), "near");
  fesetround(FE_DOWNWARD);
  check(compile(text, QN_ISA_V3, &other), "down");
  fesetround(FE_TONEAREST);
  check(one.size == other.size && one.data && !memcmp(one.data, other.data, one.size), "the same object");
  free(one.data);
  free(other.data);
}

static void *small_stack(void *unused) {
  (void)unused;
  check(mul_add_works(), "a kernel");
  return NULL;
}

static void check_small_stack(void) {
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 128 << 10);
  if (pthread_create(&thread, &attributes, small_stack, NULL) == 0) pthread_join(thread, NULL);
}

/* ---- Threads ---- */

static void *many(void *arg) {
  const int64_t mine = (int64_t)(intptr_t)arg;
  for (int i = 0; i < 6; i++) {
    char text[200], said[200];
    union {
      void *address;
      int (*run)(int x);
    } entry;
    qn_bytes object = {NULL, 0};
    snprintf(text, sizeof text, "int k(int x) { return x * %d + %d; }\n", (int)mine + 2, i);
    const qn_compile_request request = {text, strlen(text), QN_ISA_V2, 0, 0};
    int good = qn_clang_compile(&request, &object, said, sizeof said);
    qn_loaded *loaded = good ? qn_object_load(object.data, object.size, "k", said, sizeof said) : NULL;
    free(object.data);
    entry.address = loaded ? qn_object_entry(loaded) : NULL;
    good = loaded && entry.run(1000) == 1000 * ((int)mine + 2) + i;
    __atomic_fetch_add(good ? &shared->good : &shared->bad, 1, __ATOMIC_RELAXED);
    if (!good) snprintf(shared->text, sizeof shared->text, "%s", said);
    qn_object_unload(loaded);
  }
  return NULL;
}

static void check_threads(void) {
  pthread_t threads[8];
  for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, many, (void *)(intptr_t)i);
  for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
}

/* ---- A fatal error ---- */

static void *fails(void *unused) {
  char said[300] = "";
  qn_bytes object = {NULL, 0};
  const qn_compile_request request = {mul_add, sizeof mul_add - 1, QN_ISA_V3, 0, 0};
  const int good = !qn_clang_compile(&request, &object, said, sizeof said) &&
                   strstr(said, "LLVM failed: asked for by QUERN_TEST_COMPILER");
  (void)unused;
  __atomic_fetch_add(good ? &shared->good : &shared->bad, 1, __ATOMIC_RELAXED);
  if (!good) snprintf(shared->text, sizeof shared->text, "%s", said);
  return NULL;
}

static void check_fatal(void) {
  pthread_t threads[4];
  has_lost_threads = 1;
  setenv("QUERN_TEST_COMPILER", "fatal,hold=50", 1);
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, fails, NULL);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  check(strstr(qn_clang_state(), "LLVM failed: asked for") != NULL, "the state says so");
  unsetenv("QUERN_TEST_COMPILER");
  fails(NULL);
  const pid_t pid = fork();
  if (pid == 0) {
    qn_bytes object;
    _exit(compile(mul_add, QN_ISA_V3, &object) || !strstr(why, "LLVM failed"));
  }
  int status = -1;
  check(waitpid(pid, &status, 0) == pid && status == 0, "for children as well");
}

/* ---- Forks ---- */

static int child_status(pid_t pid) {
  int status = -1;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void check_fork(void) {
  has_lost_threads = 1;
  check(mul_add_works(), "the parent compiles");
  for (int i = 0; i < 3; i++) {
    pid_t pid = fork();
    if (pid == 0) {
      const int good = mul_add_works();
      pid = fork();
      if (pid == 0) exit(mul_add_works() ? 0 : 1);
      exit(child_status(pid) || !good);
    }
    check(child_status(pid) == 0, "a child and a grandchild compile, and exit");
    check(mul_add_works(), "the parent still compiles");
  }
}

static void *compiles(void *unused) {
  (void)unused;
  check(mul_add_works(), "held, then compiled");
  return NULL;
}

static void check_fork_under_way(void) {
  pthread_t thread;
  has_lost_threads = 1;
  setenv("QUERN_TEST_COMPILER", "hold=300", 1);
  pthread_create(&thread, NULL, compiles, NULL);
  usleep(200000); /* opened, and held */
  const pid_t pid = fork();
  if (pid == 0) {
    unsetenv("QUERN_TEST_COMPILER");
    exit(!mul_add_works());
  }
  check(child_status(pid) == 0, "a child of a process that compiles compiles, too, and exits");
  pthread_join(thread, NULL);
}

/* Forks at any moment, the opening of the module among them: the child gets an answer. It ends by _exit: at the fork the thread
 * that opens the module may hold the C library's lock of what exit() runs, which a child of it would wait for without end. */
static void check_forks_any_time(void) {
  pthread_t thread;
  has_lost_threads = 1;
  pthread_create(&thread, NULL, compiles, NULL);
  for (int i = 0; i < 25; i++) {
    const pid_t pid = fork();
    if (pid == 0) {
      qn_bytes object;
      const int done = compile(mul_add, qn_isa_machine(), &object);
      _exit(!done && !strstr(why, "forked while"));
    }
    check(child_status(pid) == 0, "a child");
    usleep(1000);
  }
  pthread_join(thread, NULL);
}

/* ---- Exits ---- */

static void *compiles_on(void *unused) {
  qn_bytes object;
  const qn_compile_request request = {mul_add, sizeof mul_add - 1, QN_ISA_V3, 0, 0};
  char said[200];
  (void)unused;
  while (qn_clang_compile(&request, &object, said, sizeof said)) free(object.data);
  return NULL;
}

static void exit_while_held(void) {
  pthread_t threads[3];
  has_lost_threads = 1;
  setenv("QUERN_TEST_COMPILER", "hold=20000", 1);
  for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, compiles_on, NULL);
  for (int i = 0; i < 3; i++) pthread_detach(threads[i]);
  for (int i = 0; i < 10000 && strcmp(qn_clang_state(), "ready") != 0; i++) usleep(1000);
  usleep(50000);
  check(1, "held");
  *(double *)(void *)(shared + 1) = now_ms();
}

static int exit_delay_us;
static void exit_any_time(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, compiles_on, NULL);
  pthread_detach(thread);
  usleep((unsigned)exit_delay_us);
  check(1, "compiling");
}

static void after_stop(void) {
  qn_bytes object;
  if (compile(mul_add, QN_ISA_V3, &object) || !strstr(why, "the process ends")) _exit(7);
}

static void compile_at_exit(void) {
  atexit(after_stop); /* before the module registers its own: runs after it */
  check(mul_add_works(), "a kernel");
}

static void test_exits(void) {
  int status = in_child(exit_while_held);
  const double took = now_ms() - *(double *)(void *)(shared + 1);
  ok(status == 0 && took < (IS_SANITIZED ? 2000 : 100),
     "exit while a compile is held and two wait: status %d after %.0f ms", status, took);
  child_is_fine(compile_at_exit, "after the end has begun, nothing is compiled");
  if (IS_SANITIZED) {
    skip(1, "LLVM's destructors run where the module is opened without RTLD_DEEPBIND");
    return;
  }
  int bad = 0;
  for (int i = 0; i < 30; i++) {
    exit_delay_us = i * 2500;
    status = in_child(exit_any_time);
    if (status) diag("exit after %d us: status %d", exit_delay_us, status);
    bad += status != 0;
  }
  is_int(bad, 0, "30 exits at any moment of opening and compiling");
}

static void nothing_there(void) {
  setenv("QUERN_MODULE_DIR", "/nonexistent", 1);
  qn_bytes object;
  char identity[2048];
  if (qn_clang_identity(identity, sizeof identity)) { /* found elsewhere */
    check(1, "found");
    return;
  }
  check(!compile(mul_add, QN_ISA_V3, &object) && strstr(why, "quern-clang.so is not in"),
        "says where it was looked for");
  check(strstr(qn_clang_state(), "quern-clang.so is not in") != NULL, "and so does the state");
}

int main(void) {
  const char *build = getenv("QUERN_BUILD_DIR");
  char path[4096];
  if (build && !getenv("QUERN_MODULE_DIR")) {
    snprintf(path, sizeof path, "%s/quern", build);
    setenv("QUERN_MODULE_DIR", path, 1);
  }
  if (!qn_module_path("quern-clang.so", path, sizeof path)) skip_all("%s", path);
#if !defined(__x86_64__)
  skip_all("Clang in process compiles for x86-64 only");
#endif
  shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) bail("no shared memory");
  child_is_fine(check_host, "the host notices nothing: errno, locale, rounding, signals, files, output");
  child_is_fine(nothing_there, "a module that is not there");
  child_is_fine(check_levels, "each level's macros");
  child_is_fine(check_errors, "errors in the source");
  child_is_fine(check_rounding, "the caller's rounding mode does not matter");
  if (IS_SANITIZED)
    skip(1, "sanitized code needs larger stacks");
  else
    child_is_fine(check_small_stack, "a caller with a stack of 128 KB");
  child_is_fine(check_threads, "8 threads at once");
  child_is_fine(check_large, "a kernel of 4096 values");
  diag("%s", shared->text);
  child_is_fine(check_fatal, "a fatal error of LLVM ends the compiler, not the process");
  if (IS_TSAN) {
    skip(3, "ThreadSanitizer does not let a forked child start threads");
  } else {
    child_is_fine(check_fork, "forks of a process that has compiled");
    child_is_fine(check_fork_under_way, "a fork while a compile is under way");
    child_is_fine(check_forks_any_time, "forks at any moment");
  }
  test_exits();
  test_bits();
  return done_testing();
}
