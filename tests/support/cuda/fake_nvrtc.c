/* SPDX-License-Identifier: Apache-2.0
 *
 * fake_nvrtc.c: libnvrtc.so.13 for machines without CUDA: compiles the very text for the CPU, by Clang or, where it is not, by c++, with
 * cuda_host.h, and hands the shared object out as a cubin (fake_cuda.h) that the fake driver can run. Wants --gpu-architecture=sm_NN, or
 * compute_NN for PTX. */
#include <errno.h>
#include <spawn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <unistd.h>

#include "fake_cuda.h"

#define EXPORT __attribute__((visibility("default")))
#ifndef FAKE_INCLUDE
#error "FAKE_INCLUDE: the folder of cuda_host.h"
#endif
extern char **environ;

enum { OUT_OF_MEMORY = 1, INVALID_INPUT = 3, INVALID_PROGRAM = 4, INVALID_OPTION = 5, COMPILATION = 6, INTERNAL = 11, CANCELLED = 14 };

typedef struct program {
  char *text, *log, *cubin;
  size_t cubin_size;
  int is_ptx;
  int (*flow)(void *payload, void *unused);
  void *payload;
  int n_headers;
  char **headers, **names;
} program;

/* How often a function has been called, this call among it. */
static int count_call(const char *function) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static char counted[16][40];
  static int counts[16];
  int k = 0;
  pthread_mutex_lock(&lock);
  while (k < 15 && counted[k][0] && strcmp(counted[k], function)) k++;
  if (!counted[k][0]) snprintf(counted[k], sizeof counted[k], "%s", function);
  const int count = ++counts[k];
  pthread_mutex_unlock(&lock);
  return count;
}

static int planned(const char *function) {
  const char *plan = getenv("FAKE_NVRTC_FAIL");
  const int count = count_call(function);
  int code = 0;
  char name[40];
  char which[16];
  if (!plan || sscanf(plan, "%39[^:]:%15[^:]:%d", name, which, &code) != 3 || strcmp(name, function)) return 0;
  const int nth = atoi(which);
  return count == nth || (strchr(which, '+') && count > nth) ? code : 0;
}
#define CALL(function)                   \
  do {                                   \
    const int code = planned(#function); \
    if (code) return code;               \
  } while (0)

EXPORT const char *nvrtcGetErrorString(int result) {
  static const char *const names[] = {"NVRTC_SUCCESS", "NVRTC_ERROR_OUT_OF_MEMORY", "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
                                      "NVRTC_ERROR_INVALID_INPUT", "NVRTC_ERROR_INVALID_PROGRAM", "NVRTC_ERROR_INVALID_OPTION",
                                      "NVRTC_ERROR_COMPILATION"};
  return result >= 0 && result < 7 ? names[result] : "NVRTC_ERROR_INTERNAL_ERROR";
}

EXPORT int nvrtcVersion(int *major, int *minor) {
  const char *version = getenv("FAKE_NVRTC_VERSION");
  CALL(nvrtcVersion);
  *major = 13;
  *minor = 0;
  if (version) sscanf(version, "%d.%d", major, minor);
  return 0;
}

static const int archs[] = {75, 80, 86, 89, 90, 100, 120};
EXPORT int nvrtcGetNumSupportedArchs(int *n) {
  const char *most = getenv("FAKE_NVRTC_ARCHS");
  CALL(nvrtcGetNumSupportedArchs);
  *n = (int)(sizeof archs / sizeof archs[0]);
  if (most && atoi(most) < *n) *n = atoi(most);
  return 0;
}
EXPORT int nvrtcGetSupportedArchs(int *numbers) {
  int n = 0;
  CALL(nvrtcGetSupportedArchs);
  nvrtcGetNumSupportedArchs(&n);
  memcpy(numbers, archs, (size_t)n * sizeof archs[0]);
  return 0;
}

EXPORT int nvrtcCreateProgram(program **made, const char *text, const char *name, int n, const char *const *headers,
    const char *const *names) {
  (void)name;
  CALL(nvrtcCreateProgram);
  for (int i = 0; i < n; i++)
    if (strchr(names[i], '/') || !strcmp(names[i], "text.cu")) return INVALID_INPUT; /* they become files */
  program *p = calloc(1, sizeof *p);
  *made = p;
  p->text = strdup(text);
  p->log = strdup("");
  p->n_headers = n;
  p->headers = calloc((size_t)n + 1, sizeof *p->headers);
  p->names = calloc((size_t)n + 1, sizeof *p->names);
  for (int i = 0; i < n; i++) p->headers[i] = strdup(headers[i]), p->names[i] = strdup(names[i]);
  return 0;
}

EXPORT int nvrtcDestroyProgram(program **made) {
  CALL(nvrtcDestroyProgram);
  program *p = *made;
  if (!p) return INVALID_PROGRAM;
  for (int i = 0; i < p->n_headers; i++) free(p->headers[i]), free(p->names[i]);
  free(p->headers), free(p->names), free(p->text), free(p->log), free(p->cubin), free(p);
  *made = NULL;
  return 0;
}

static int write_file(const char *folder, const char *name, const char *text) {
  char path[300];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "we");
  const int is_good = file && fputs(text, file) >= 0;
  return file && fclose(file) == 0 && is_good;
}

static char *read_whole(const char *folder, const char *name, size_t before, size_t *size) {
  char path[300];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "re");
  if (!file) return NULL;
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  char *text = calloc(1, before + *size + 1);
  if (text && fread(text + before, 1, *size, file) != *size) free(text), text = NULL;
  fclose(file);
  return text;
}

/* Comments become blanks, so that only code is looked at. */
static char *without_comments(const char *text) {
  char *code = strdup(text);
  for (char *at = code; at && *at;) {
    char *end = !strncmp(at, "/*", 2) ? strstr(at + 2, "*/") : !strncmp(at, "//", 2) ? strchr(at, '\n') : at;
    if (end == at) {
      at++;
      continue;
    }
    if (!end) end = at + strlen(at);
    else if (at[1] == '*') end += 2;
    for (; at < end; at++) *at = ' ';
  }
  return code;
}

/* How the driver calls kernels and learns the sizes of their arguments: a line for each `__global__ void ... NAME(`. */
static int write_calls(const char *folder, const char *text) {
  static const char head[] =
      "#include \"text.cu\"\n"
      "template <int... I> struct fake_ints {};\n"
      "template <int N, int... I> struct fake_upto : fake_upto<N - 1, N - 1, I...> {};\n"
      "template <int... I> struct fake_upto<0, I...> { typedef fake_ints<I...> type; };\n"
      "template <class... A, int... I> void fake_call(void (*f)(A...), void **p, fake_ints<I...>) {\n"
      "  (void)p, f(*(A *)p[I]...);\n}\n"
      "template <class... A> void fake_run(void (*f)(A...), void **p) {\n"
      "  fake_call(f, p, typename fake_upto<sizeof...(A)>::type());\n}\n"
      "template <class... A> int fake_sizes(void (*)(A...), unsigned long *s) {\n"
      "  unsigned long all[] = {sizeof(A)..., 0};\n"
      "  for (unsigned long i = 0; i < sizeof...(A); i++) s[i] = all[i];\n"
      "  return (int)sizeof...(A);\n}\n"
      "#define FAKE_KERNEL(name) extern \"C\" void fake_run_##name(void **p) { fake_run(name, p); } \\\n"
      "  extern \"C\" int fake_sizes_##name(unsigned long *s) { return fake_sizes(name, s); }\n";
  char *code = without_comments(text), *calls = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&calls, &size);
  fputs(head, out);
  for (char *at = code; (at = strstr(at, "__global__"));) {
    char name[256] = "", bounds[64] = "";
    char *line = at;
    while (line > code && line[-1] != '\n') line--;
    at += strlen("__global__");
    if (*line == '#') continue;
    if (sscanf(at, " void __launch_bounds__(%63[^)]) %255[A-Za-z0-9_](", bounds, name) < 2 &&
        sscanf(at, " void %255[A-Za-z0-9_](", name) < 1)
      continue;
    fprintf(out, "FAKE_KERNEL(%s)\n", name);
  }
  fclose(out);
  const int is_good = write_file(folder, "calls.cc", calls);
  free(code), free(calls);
  return is_good;
}

static int run_compiler(const char *folder) {
  char source[300], object[300], log[300];
  snprintf(source, sizeof source, "%s/calls.cc", folder);
  snprintf(object, sizeof object, "%s/kernels.so", folder);
  snprintf(log, sizeof log, "%s/log", folder);
  /* Not optimised, and not with all of the machine's memory: -O1 takes minutes and 20 GB for some powers of integers. A sanitizer that
   * is loaded into the test wants more than that by itself. Clang takes half of GCC's time. */
  char *argv[] = {"sh", "-c", "unset LD_PRELOAD; ulimit -v 4000000; exec $(command -v clang-19 || echo c++) \"$@\"", "c++", "-x", "c++", "-std=c++17", "-DQC_HOST",
      "-I" FAKE_INCLUDE, "-O0", "-ffp-contract=off", "-shared", "-fPIC", source, "-o", object, "-lm", NULL};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 2, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t pid = 0;
  int status = -1, failed = posix_spawnp(&pid, "sh", &actions, NULL, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed) return write_file(folder, "log", "fake NVRTC: there is no c++\n") ? INTERNAL : OUT_OF_MEMORY;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  return status == 0 ? 0 : COMPILATION;
}

EXPORT int nvrtcSetFlowCallback(program *p, int (*flow)(void *payload, void *unused), void *payload) {
  CALL(nvrtcSetFlowCallback);
  p->flow = flow;
  p->payload = payload;
  return 0;
}

/* FAKE_NVRTC_HOLD=MS/TEXT: a compile of a source with that text takes so many ms longer, unless it is told to end. */
static int is_held(const program *p) {
  const char *hold = getenv("FAKE_NVRTC_HOLD"), *part = hold ? strchr(hold, '/') : NULL;
  const int n = part && strstr(p->text, part + 1) ? atoi(hold) : 0;
  for (int ms = 0; ms < n; ms += 5) {
    if (p->flow && p->flow(p->payload, NULL)) return 1;
    usleep(5000);
  }
  return 0;
}

EXPORT int nvrtcCompileProgram(program *p, int n, const char *const *options) {
  char folder[] = "/tmp/fake_nvrtc.XXXXXX", path[300];
  const char *unknown = getenv("FAKE_NVRTC_UNKNOWN");
  int arch = 0, result = OUT_OF_MEMORY;
  size_t size = 0;
  CALL(nvrtcCompileProgram);
  for (int i = 0; i < n; i++) {
    const char *value = strchr(options[i], '_');
    const int is_arch = !strncmp(options[i], "--gpu-architecture=", 19) || !strncmp(options[i], "-arch=", 6);
    if (is_arch) arch = value ? atoi(value + 1) : 0, p->is_ptx = strstr(options[i], "=compute_") != NULL;
    if (unknown && !strcmp(options[i], unknown)) arch = -1;
    if (arch < 0) break;
  }
  if (arch <= 0) return INVALID_OPTION;
  if (is_held(p)) return CANCELLED;
  if (!mkdtemp(folder)) return INTERNAL;
  int is_written = write_file(folder, "text.cu", p->text) && write_calls(folder, p->text);
  for (int i = 0; i < p->n_headers; i++) is_written &= write_file(folder, p->names[i], p->headers[i]);
  if (is_written) result = run_compiler(folder);
  free(p->log), free(p->cubin);
  p->cubin = NULL;
  p->log = read_whole(folder, "log", 0, &size);
  if (!p->log) p->log = strdup("");
  if (!result && (p->cubin = read_whole(folder, "kernels.so", sizeof(fake_cubin), &size))) {
    fake_cubin head = {.text_hash = fake_hash(p->text), .size = size, .arch = (uint32_t)arch, .is_ptx = (uint32_t)p->is_ptx};
    memcpy(head.magic, FAKE_CUBIN_MAGIC, sizeof head.magic);
    memcpy(p->cubin, &head, sizeof head);
    p->cubin_size = sizeof head + size;
  }
  static const char *const files[] = {"text.cu", "calls.cc", "kernels.so", "log"};
  for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) snprintf(path, sizeof path, "%s/%s", folder, files[i]),
      unlink(path);
  for (int i = 0; i < p->n_headers; i++) snprintf(path, sizeof path, "%s/%s", folder, p->names[i]), unlink(path);
  rmdir(folder);
  return result;
}

EXPORT int nvrtcGetProgramLogSize(program *p, size_t *size) {
  CALL(nvrtcGetProgramLogSize);
  *size = strlen(p->log) + 1;
  return 0;
}
EXPORT int nvrtcGetProgramLog(program *p, char *text) {
  CALL(nvrtcGetProgramLog);
  strcpy(text, p->log);
  return 0;
}
EXPORT int nvrtcGetCUBINSize(program *p, size_t *size) {
  CALL(nvrtcGetCUBINSize);
  if (!p->cubin || p->is_ptx) return INVALID_PROGRAM;
  *size = p->cubin_size;
  return 0;
}
EXPORT int nvrtcGetCUBIN(program *p, char *bytes) {
  CALL(nvrtcGetCUBIN);
  if (!p->cubin || p->is_ptx) return INVALID_PROGRAM;
  memcpy(bytes, p->cubin, p->cubin_size);
  return 0;
}
/* PTX: the same bytes, and a 0 behind them. */
EXPORT int nvrtcGetPTXSize(program *p, size_t *size) {
  CALL(nvrtcGetPTXSize);
  if (!p->cubin || !p->is_ptx) return INVALID_PROGRAM;
  *size = p->cubin_size + 1;
  return 0;
}
EXPORT int nvrtcGetPTX(program *p, char *text) {
  CALL(nvrtcGetPTX);
  if (!p->cubin || !p->is_ptx) return INVALID_PROGRAM;
  memcpy(text, p->cubin, p->cubin_size + 1);
  return 0;
}
