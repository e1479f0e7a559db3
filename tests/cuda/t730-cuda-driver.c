/* SPDX-License-Identifier: Apache-2.0
 * tags: memory threads
 *
 * t730-cuda-driver: opening CUDA's driver and compiler, what is said where they are not as they should be, forks and threads;
 * against the fakes of tests/cuda, each case in a process of its own. Then the fakes themselves: a kernel's text is compiled,
 * loaded, run and read back. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/cuda/cuda_driver.h"
#include "cuda/fake_cuda.h"
#include "tap.h"

extern char **environ;
static char fakes[512], old[600], scratch[] = "/tmp/t730.XXXXXX";

/* ---- Cases in processes of their own ---- */

static char said[4096];

/* What `run` writes to a process's standard output, with these variables ("NAME=value", NULL at the end). */
static const char *in_child(const char *const *variables, void (*run)(FILE *out)) {
  int ends[2], status = 0;
  size_t n = 0;
  ssize_t more;
  if (pipe(ends)) bail("no pipe");
  fflush(stdout);
  const pid_t pid = fork();
  if (pid == 0) {
    for (int i = 0; variables[i]; i++) putenv((char *)(uintptr_t)variables[i]);
    FILE *out = fdopen(ends[1], "w");
    close(ends[0]);
    run(out);
    fclose(out);
    _exit(0);
  }
  close(ends[1]);
  while (n < sizeof said - 1 && ((more = read(ends[0], said + n, sizeof said - 1 - n)) > 0 || (more < 0 && errno == EINTR)))
    n += more > 0 ? (size_t)more : 0;
  said[n] = 0;
  close(ends[0]);
  waitpid(pid, &status, 0);
  if (status) snprintf(said + n, sizeof said - n, " (the process ended with %d)", status);
  return said;
}

static char path_variable[700];
static const char *const with_fakes[] = {path_variable, NULL};

/* Variables: QUERN_CUDA_PATH=folder and up to two more. */
static const char *const *these(const char *folder, const char *a, const char *b) {
  static char path[700];
  static const char *list[4];
  snprintf(path, sizeof path, "QUERN_CUDA_PATH=%s", folder);
  list[0] = path;
  list[1] = a;
  list[2] = a ? b : NULL;
  return list;
}

static void say_open(FILE *out) {
  quern_status status = 1;
  char state[1024];
  const qn_cuda_driver *driver = qn_cuda_open(&status);
  qn_cuda_state(state, sizeof state);
  fprintf(out, "%s %d %s|%s", driver ? "driver" : "none", (int)status, state, driver ? "" : quern_last_error());
}

static void say_compiler(FILE *out) {
  quern_status status = 1;
  char state[1024];
  const qn_nvrtc *compiler = qn_cuda_compiler(&status);
  qn_cuda_state(state, sizeof state);
  fprintf(out, "%s %d %s|%s", compiler ? "compiler" : "none", (int)status, state, compiler ? "" : quern_last_error());
}

static int is_mapped(const char *part) {
  char line[4096];
  int found = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  if (!maps) bail("no /proc/self/maps");
  while (fgets(line, sizeof line, maps)) found |= strstr(line, part) != NULL;
  fclose(maps);
  return found;
}

static void put_file(const char *folder, const char *name, const char *text) {
  char path[600];
  mkdir(folder, 0700);
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  if (!file || fputs(text, file) < 0 || fclose(file)) bail("%s cannot be written", path);
}

static void link_fake(const char *folder, const char *name) {
  char from[600], to[600];
  snprintf(from, sizeof from, "%s/%s", fakes, name);
  snprintf(to, sizeof to, "%s/%s", folder, name);
  mkdir(folder, 0700);
  if (symlink(from, to)) bail("%s cannot be made", to);
}

static const char *folder_of(const char *name) {
  static char folders[8][64];
  static int turn;
  char *folder = folders[turn++ % 8];
  snprintf(folder, sizeof folders[0], "%s/%s", scratch, name);
  return folder;
}

/* ---- The loader ---- */

static void test_loader(void) {
  const int has_driver = system("ldconfig -p 2>/dev/null | grep -q 'libcuda\\.so\\.1'") == 0;
  char state[200];
  qn_cuda_state(state, sizeof state);
  is_str(state, "not loaded yet", "nothing was opened");
  ok(!is_mapped("libcuda.so") && !is_mapped("libnvrtc"), "  nor is in the process");
  mkdir(folder_of("empty"), 0700);
  if (has_driver) {
    skip(3, "this machine has a driver");
  } else {
    has_str(in_child(these(folder_of("empty"), NULL, NULL), say_open), "none -4 libcuda.so.1 is not there: not in ",
        "no driver: DEVICE");
    has_str(said, "CUDA cannot be used: libcuda.so.1 is not there", "  and the sentence says so");
    has_str(in_child(these("tests/fake", NULL, NULL), say_open), "QUERN_CUDA_PATH is ignored, for it is not an absolute path",
            "a relative path is refused");
  }
  put_file(folder_of("broken"), "libcuda.so.1", "no library");
  has_str(in_child(these(folder_of("broken"), NULL, NULL), say_open), "/broken/libcuda.so.1",
      "what is there and is no library is named");
  has_str(said, "none -4", "  and refused");
  is_str(in_child(with_fakes, say_open), "driver 0 ready: driver 13.0, 2 devices, NVRTC not loaded yet|", "the fake driver");
  is_str(in_child(with_fakes, say_compiler), "compiler 0 ready: driver 13.0, 2 devices, NVRTC 13.0|", "and its compiler");
  mkdir(folder_of("root"), 0700);
  link_fake(folder_of("root/lib64"), "libcuda.so.1");
  is_str(in_child(these(folder_of("root"), "FAKE_CUDA_DEVICES=1", NULL), say_open),
         "driver 0 ready: driver 13.0, 1 device, NVRTC not loaded yet|", "in lib64, with one device");
  is_str(in_child(these(old, NULL, NULL), say_open), "driver 0 ready: driver 11.2, 2 devices, NVRTC not loaded yet|",
         "a driver without cuGetProcAddress and libraries");
  has_str(in_child(these(fakes, "FAKE_CUDA_VERSION=10020", NULL), say_open),
      "none -4 the driver is of CUDA 10.2, 11.0 is wanted", "too old");
  has_str(in_child(these(fakes, "FAKE_CUDA_MISSING=cuStreamGetCtx", NULL), say_open),
      "none -4 libcuda.so.1: the driver has no cuStreamGetCtx",
          "a function that is needed is missing");
  has_str(in_child(these(fakes, "FAKE_CUDA_MISSING=cuLibraryLoadData,cuCtxGetId", NULL), say_open), "driver 0 ready",
      "one that is not needed");
  has_str(in_child(these(fakes, "FAKE_CUDA_DEVICES=0", NULL), say_open),
          "none -4 no device: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected", "no device");
  static const char *const codes[][2] = {{"STUB_LIBRARY", "CUDA driver is a stub library"}, {"OUT_OF_MEMORY", "out of memory"},
                                         {"SYSTEM_DRIVER_MISMATCH", "system has unsupported display driver"}, {"UNKNOWN",
                                             "unknown error"}};
  for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
    char variable[80], wanted[160];
    snprintf(variable, sizeof variable, "FAKE_CUDA_FAIL=cuInit:1:%s", codes[i][0]);
    snprintf(wanted, sizeof wanted, "none -4 CUDA_ERROR_%s: %s|", codes[i][0], codes[i][1]);
    has_str(in_child(these(fakes, variable, NULL), say_open), wanted, "cuInit fails: %s", codes[i][0]);
  }
  has_str(in_child(these(fakes, "FAKE_CUDA_FAIL=cuDeviceGetCount:1:UNKNOWN", NULL), say_open), "none -4 CUDA_ERROR_UNKNOWN",
      "no count");
}

static void test_compiler(void) {
  link_fake(folder_of("two"), "libcuda.so.1");
  put_file(folder_of("two"), "libnvrtc.so.13", "none");
  put_file(folder_of("two"), "libnvrtc.so.12", "none");
  has_str(in_child(these(folder_of("two"), NULL, NULL), say_compiler), "none -10 ready: driver 13.0, 2 devices, no NVRTC: ",
      "none to be used");
  has_str(said, "/two/libnvrtc.so.13", "  each is named");
  has_str(said, "/two/libnvrtc.so.12", "  with its trouble");
  put_file(folder_of("fake12"), "libnvrtc.so.12", "none");
  link_fake(folder_of("fake12"), "libcuda.so.1");
  link_fake(folder_of("fake12"), "libnvrtc.so.13");
  has_str(in_child(these(folder_of("fake12"), "FAKE_NVRTC_VERSION=14.1", NULL), say_compiler),
          "none -10 ready: driver 13.0, 2 devices, no NVRTC: libnvrtc.so.13 says that its version is 14.1",
              "of another version than its name");
  has_str(in_child(these(folder_of("fake12"), "FAKE_CUDA_VERSION=12040", NULL), say_compiler),
          "NVRTC 13.0 is newer than the driver, of CUDA 12.4", "newer than the driver");
  has_str(in_child(these(folder_of("fake12"), "FAKE_NVRTC_FAIL=nvrtcVersion:1:1", NULL), say_compiler),
          "libnvrtc.so.13: NVRTC_ERROR_OUT_OF_MEMORY", "it fails when asked for its version");
  has_str(in_child(these(fakes, "FAKE_CUDA_DEVICES=0", NULL), say_compiler), "none -4 no device", "none without a driver");
  /* No libnvrtc there: the machine's, if it has one. */
  if (strstr(in_child(these(folder_of("root"), NULL, NULL), say_compiler), "libnvrtc.so.13 is not there"))
    has_str(said, "none -10 ready: driver 13.0, 2 devices, no NVRTC: libnvrtc.so.13 is not there: not in ", "no NVRTC here");
  else
    has_str(said, "compiler 0 ready: driver 13.0, 2 devices, NVRTC 1", "the machine's own NVRTC");
}

/* ---- Processes and threads ---- */

static void forks(FILE *out) {
  quern_status status;
  const qn_cuda_driver *driver = qn_cuda_open(&status);
  fflush(out);
  const pid_t pid = fork();
  if (pid == 0) {
    say_open(out);
    int result = driver->stream_synchronize(NULL); /* what was in hand before the fork */
    fprintf(out, " %d", result);
    result = qn_cuda_fail(driver, result, "copy");
    fprintf(out, " %d %s; ", result, quern_last_error());
    say_compiler(out);
    fclose(out);
    _exit(0);
  }
  waitpid(pid, NULL, 0);
  fputs("; the parent: ", out);
  say_open(out);
}

static void forks_before(FILE *out) {
  const pid_t pid = fork();
  if (pid == 0) {
    say_open(out);
    fclose(out);
    _exit(0);
  }
  waitpid(pid, NULL, 0);
}

static void *open_there(void *arg) {
  quern_status status;
  pthread_barrier_wait(arg);
  return (void *)(uintptr_t)qn_cuda_compiler(&status) ? (void *)(uintptr_t)qn_cuda_open(&status) : NULL;
}

static void threads_open(FILE *out) {
  pthread_t threads[16];
  pthread_barrier_t start;
  int n_same = 0;
  void *each[16];
  quern_status status;
  pthread_barrier_init(&start, NULL, 16);
  for (int i = 0; i < 16; i++) pthread_create(&threads[i], NULL, open_there, &start);
  for (int i = 0; i < 16; i++) pthread_join(threads[i], &each[i]);
  for (int i = 0; i < 16; i++) n_same += each[i] && each[i] == (void *)(uintptr_t)qn_cuda_open(&status);
  fprintf(out, "%d", n_same);
}

static int n_descriptors(void) {
  int n = 0;
  DIR *list = opendir("/proc/self/fd");
  while (readdir(list)) n++;
  closedir(list);
  return n;
}

static void leaves_alone(FILE *out) {
  quern_status status;
  size_t n_variables = 0, n_after = 0;
  while (environ[n_variables]) n_variables++;
  char **kept = malloc(n_variables * sizeof *kept);
  memcpy(kept, environ, n_variables * sizeof *kept);
  const int n = n_descriptors();
  errno = 77;
  const qn_cuda_driver *driver = qn_cuda_open(&status);
  qn_cuda_compiler(&status);
  fprintf(out, "errno %d", errno);
  qn_cuda_context context = (qn_cuda_context)(uintptr_t)1;
  driver->context_get(&context);
  while (environ[n_after]) n_after++;
  fprintf(out, ", descriptors %d, variables %d, context %d", n_descriptors() - n, n_after == n_variables && !memcmp(kept,
      environ, n_variables * sizeof *kept),
          context == NULL);
  free(kept);
}

static void test_process(void) {
  has_str(in_child(with_fakes, forks),
      "none -4 the process was forked after CUDA was initialised|CUDA cannot be used: the process", "a forked child");
  has_str(said, " 3 -4 copy: the process was forked after CUDA was initialised; none -4", "  with a driver in hand");
  has_str(said, "; the parent: driver 0 ready", "  the parent goes on");
  has_str(in_child(with_fakes, forks_before), "driver 0 ready", "a child of a process that did not use CUDA");
  is_str(in_child(with_fakes, threads_open), "16", "16 threads open at once, and have the same");
  is_str(in_child(these(folder_of("root"), NULL, NULL), leaves_alone),
         "errno 77, descriptors 0, variables 1, context 1", "what was as it was");
}

/* A program with more rights than its user: the folder that a variable names is not for it. */
static void test_rights(void) {
  char copy[64], command[1000], self[512];
  const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  self[n < 0 ? 0 : n] = 0;
  snprintf(copy, sizeof copy, "%s/secure", scratch);
  snprintf(command, sizeof command, "cp '%s' '%s' && chgrp 65534 '%s' && chmod 2755 '%s' 2>/dev/null", self, copy, copy, copy);
  char answer[100] = "";
  FILE *pipe = system(command) == 0 && chmod(scratch, 0755) == 0 ? popen(strcat(strcpy(command, copy), " secure"), "r") : NULL;
  if (pipe && !fgets(answer, sizeof answer, pipe)) answer[0] = 0;
  if (pipe) pclose(pipe);
  if (!strncmp(answer, "secure ", 7))
    is_str(answer, "secure without", "a program with more rights than its user does not follow QUERN_CUDA_PATH");
  else
    skip(1, "a program with a group's rights cannot be made here");
}

/* ---- The fakes ---- */

static const char text[] =
    "typedef unsigned char u8; typedef short i16; typedef unsigned short u16; typedef int i32; typedef unsigned u32;\n"
    "typedef long long i64; typedef unsigned long long u64; typedef float f32; typedef double f64;\n"
    "typedef u16 f16_s; typedef u16 bf16_s;\n"
    "#if defined(QC_HOST)\n#include \"cuda_host.h\"\n#endif\n"
    "struct args { u64 x, y, n; };\n"
    "/* __global__ void not_this( */\n"
    "extern \"C\" __global__ void __launch_bounds__(256) twice(const __grid_constant__ args a) {\n"
    "  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < a.n; i += (u64)gridDim.x * blockDim.x)\n"
    "    ((f32 *)a.y)[i] = __fmul_rn(2.0f, ((const f32 *)a.x)[i]);\n"
    "}\n"
    "extern \"C\" __global__ void reverse(u64 x, u32 n) {\n"
    "  __shared__ f32 kept[1024];\n"
    "  f32 *at = (f32 *)x + (u64)blockIdx.x * n;\n"
    "  kept[threadIdx.x] = at[threadIdx.x];\n"
    "  __syncthreads();\n"
    "  at[threadIdx.x] = kept[n - 1 - threadIdx.x];\n"
    "}\n";

/* A function of the fake that the library has no use for. */
static void *of_fake(const char *name) {
  static void *fake;
  if (!fake) fake = dlopen(strcat(strcpy(said, fakes), "/libcuda.so.1"), RTLD_NOW);
  void *function = fake ? dlsym(fake, name) : NULL;
  if (!function) bail("the fake has no %s", name);
  return function;
}

static char *cubin_of(const qn_nvrtc *c, const char *source, const char *option, int *result, char *log) {
  qn_nvrtc_program program = NULL;
  size_t size = 0;
  char *cubin = NULL;
  c->create(&program, source, "k.cu", 0, NULL, NULL);
  *result = c->compile(program, 1, &option);
  if (!c->log_size(program, &size) && size < 4096) c->log(program, log);
  if (!*result && !c->cubin_size(program, &size) && (cubin = malloc(size))) c->cubin(program, cubin);
  c->destroy(&program);
  return cubin;
}

enum { N = 1000 };
static float x[N], y[N];

static void test_fakes(void) {
  quern_status status;
  char log[4096] = "";
  int result = -1;
  setenv("QUERN_CUDA_PATH", fakes, 1);
  const qn_nvrtc *c = qn_cuda_compiler(&status);
  const qn_cuda_driver *d = qn_cuda_open(&status);
  if (!c || !d) bail("the fakes cannot be opened: %s", quern_last_error());
  free(cubin_of(c, "none", "--fast", &result, log));
  is_int(result, 5, "fake NVRTC wants an architecture");
  if (system("c++ --version >/dev/null 2>&1")) {
    skip(1, "there is no c++ to compile kernels with");
    return;
  }
  free(cubin_of(c, "extern \"C\" __global__ void k() { wrong; }", "--gpu-architecture=sm_80", &result, log));
  is_int(result, 6, "a text that is wrong");
  has_str(log, "wrong", "  and the compiler's words");
  char *cubin = cubin_of(c, text, "--gpu-architecture=sm_90", &result, log);
  is_int(result, 0, "a text is compiled: %s", log);
  if (!cubin) return;
  ok(((fake_cubin *)(void *)cubin)->text_hash == fake_hash(text), "  that very text");

  qn_cuda_context first, second, now;
  qn_cuda_module module = NULL;
  qn_cuda_function twice = NULL, reverse = NULL;
  qn_cuda_library library = NULL;
  qn_cuda_kernel kernel = NULL;
  qn_cuda_stream stream = NULL;
  qn_cuda_address a = 0, b = 0;
  is_int(d->module_load(&module, cubin), 201, "no context, no module");
  d->primary_retain(&first, 0), d->primary_retain(&second, 1);
  d->context_push(second);
  is_int(d->module_load(&module, cubin), QN_CUDA_NO_BINARY_FOR_GPU, "a kernel of sm_90 on device 1, sm_80");
  is_int(qn_cuda_fail(d, QN_CUDA_NO_BINARY_FOR_GPU, "add: cuModuleLoadData"), QUERN_E_COMPILER, "  is COMPILER");
  is_str(quern_last_error(), "add: cuModuleLoadData: CUDA_ERROR_NO_BINARY_FOR_GPU: no kernel image is available for "
         "execution on the device", "  in words");
  is_int(qn_cuda_fail(d, 2, "x"), QUERN_E_MEMORY, "OUT_OF_MEMORY is MEMORY");
  is_int(qn_cuda_fail(d, 901, "x"), QUERN_E_CAPTURING, "STREAM_CAPTURE_INVALIDATED is CAPTURING");
  is_int(qn_cuda_fail(d, 700, "x"), QUERN_E_DRIVER, "ILLEGAL_ADDRESS is DRIVER");
  is_int(qn_cuda_fail(d, 12345, "x"), QUERN_E_DRIVER, "an unknown one is DRIVER");
  is_str(quern_last_error(), "x: CUDA error 12345: the driver does not know this error", "  in words");
  is_int(d->library_load(&library, cubin, NULL, NULL, 0, NULL, NULL, 0), 0, "a library is of no context");
  is_int(d->library_kernel(&kernel, library, "twice"), 0, "  has the kernel");
  is_int(d->kernel_function(&twice, kernel), QN_CUDA_NO_BINARY_FOR_GPU, "  which is a function on device 0 only");
  d->context_pop(&now);
  ok(now == second, "the context that was pushed is popped");
  d->context_push(first);
  is_int(d->kernel_function(&twice, kernel), 0, "  there it is");
  is_int(d->module_load(&module, cubin) | d->module_function(&reverse, module, "reverse"), 0, "a module and its function");
  is_int(d->module_function(&twice, module, "thrice"), QN_CUDA_NOT_FOUND, "none of another name");

  int (*create)(qn_cuda_stream *, unsigned), (*begin)(qn_cuda_stream, int), (*end)(qn_cuda_stream, void **);
  int (*replay)(void *, qn_cuda_stream), (*drop)(void *);
  *(void **)&create = of_fake("cuStreamCreate"), *(void **)&begin = of_fake("cuStreamBeginCapture_v2");
  *(void **)&end = of_fake("cuStreamEndCapture"), *(void **)&replay = of_fake("cuGraphLaunch");
  *(void **)&drop = of_fake("cuGraphDestroy");
  fake_cuda_log_function *log_of = (fake_cuda_log_function *)(uintptr_t)of_fake("fake_cuda_log");
  fake_cuda_count_function *count = (fake_cuda_count_function *)(uintptr_t)of_fake("fake_cuda_count");
  fake_cuda_plan_function *plan = (fake_cuda_plan_function *)(uintptr_t)of_fake("fake_cuda_plan");
  is_int(create(&stream, 1), 0, "a stream");
  for (int i = 0; i < N; i++) x[i] = (float)i;
  is_int(d->memory_allocate(&a, sizeof x) | d->memory_allocate(&b, sizeof y), 0, "memory");
  is_int(d->copy_to_device(a, x, sizeof x, stream), 0, "to the device");
  is_int(d->copy_to_device(a, x, sizeof x + 4, stream), QN_CUDA_INVALID_VALUE, "not more than there is room for");
  struct { uint64_t x, y, n; } args = {a, b, N};
  void *params[] = {&args};
  plan("");
  is_int(d->launch(twice, 2, 1, 1, 256, 1, 1, 0, stream, params, NULL), 0, "a kernel");
  has_str(log_of(), "cuLaunchKernel twice 2 1 1, 256 1 1, 0, ", "  is in the log");
  is_int(count("cuLaunchKernel"), 1, "  once");
  is_int(d->copy_to_host(y, b, sizeof y, stream) | d->stream_synchronize(stream), 0, "from the device");
  int n_wrong = 0;
  for (int i = 0; i < N; i++) n_wrong += y[i] != 2 * (float)i;
  is_int(n_wrong, 0, "every element is right");
  uint64_t from = a;
  uint32_t each = 250;
  void *two[] = {&from, &each};
  is_int(d->launch(reverse, 4, 1, 1, 250, 1, 1, 0, stream, two, NULL) | d->copy_to_host(y, a, sizeof y, stream), 0,
      "a kernel with a barrier");
  n_wrong = 0;
  for (int i = 0; i < N; i++) n_wrong += y[i] != (float)(i / 250 * 250 + 249 - i % 250);
  is_int(n_wrong, 0, "  is right");

  unsigned kind = 9, managed = 9;
  int ordinal = -1;
  uint64_t start = 0, bytes = 0;
  const int wanted[] = {QN_CUDA_POINTER_MEMORY_TYPE, QN_CUDA_POINTER_IS_MANAGED, QN_CUDA_POINTER_DEVICE_ORDINAL,
      QN_CUDA_POINTER_RANGE_START,
                        QN_CUDA_POINTER_RANGE_SIZE};
  void *values[] = {&kind, &managed, &ordinal, &start, &bytes};
  is_int(d->pointer_attributes(5, wanted, values, a + 40), 0, "what a pointer is");
  ok(kind == QN_CUDA_MEMORY_DEVICE && managed == 0 && ordinal == 0 && start == a && bytes == sizeof x, "  the device's");
  is_int(d->pointer_attributes(1, wanted, values, (uintptr_t)x), 0, "what one of the host is");
  ok(kind == 0, "  unknown");

  void *graph = NULL;
  int capturing = -1;
  qn_cuda_address other = 0;
  args.n = 10, args.x = a;
  is_int(begin(stream, 0), 0, "a capture");
  is_int(d->stream_is_capturing(stream, &capturing) | (capturing != QN_CUDA_CAPTURE_ACTIVE), 0, "  the stream says so");
  memset(y, 0, sizeof y);
  is_int(d->launch(twice, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL) | d->copy_to_host(y, b, 40, stream), 0,
      "  work goes into it");
  ok(y[0] == 0, "  and is not done");
  is_int(end(stream, &graph), 0, "  it ends");
  args.n = 0; /* what was captured is a copy */
  is_int(replay(graph, stream), 0, "  and is replayed");
  ok(y[0] == 498 && y[9] == 480, "  then it is done");
  is_int(drop(graph), 0, "  and given up");
  begin(stream, 0);
  is_int(d->memory_allocate(&other, 4), 900, "memory during a capture: STREAM_CAPTURE_UNSUPPORTED");
  is_int(d->launch(twice, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL), 901, "  the capture is lost");
  is_int(end(stream, &graph), 901, "  and says so when it ends");

  plan("cuMemAlloc:2:OUT_OF_MEMORY,cuLaunchKernel:1+:LAUNCH_FAILED");
  is_int(d->memory_allocate(&other, 4), 0, "a plan: the first allocation");
  d->memory_free(other);
  is_int(d->memory_allocate(&other, 4), 2, "  not the second");
  is_int(d->launch(twice, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL), 719, "  no launch");
  is_int(d->launch(twice, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL), 719, "  nor a second");
  plan("*:2+:ILLEGAL_ADDRESS");
  is_int(d->stream_synchronize(stream), 0, "a context that is lost: the first call");
  is_int(d->stream_synchronize(stream), 700, "  the second");
  is_int(d->memory_free(a), 700, "  and all after it");
  plan("");
  is_int(d->memory_free(a) | d->memory_free(b) | d->library_unload(library) | d->module_unload(module), 0, "all is given back");
  free(cubin);
}

int main(int argc, char **argv) {
  const ssize_t n = readlink("/proc/self/exe", fakes, sizeof fakes - 8);
  fakes[n < 0 ? 0 : n] = 0;
  if (argc > 1 && !strcmp(argv[1], "secure")) {
    quern_status status;
    qn_cuda_open(&status);
    printf("%s %s", getauxval(AT_SECURE) ? "secure" : "usual", is_mapped("/fake/libcuda.so.1") ? "with" : "without");
    return 0;
  }
  *strrchr(fakes, '/') = 0;
  snprintf(old, sizeof old, "%s/fake-old", fakes);
  strcat(fakes, "/fake");
  snprintf(path_variable, sizeof path_variable, "QUERN_CUDA_PATH=%s", fakes);
  if (!mkdtemp(scratch)) bail("no folder in /tmp");
  test_loader();
  test_compiler();
  test_process();
  setenv("QUERN_CUDA_PATH", fakes, 1);
  test_rights();
  test_fakes();
  char command[64];
  snprintf(command, sizeof command, "rm -rf %s", scratch);
  if (system(command)) diag("%s is left", scratch);
  return done_testing();
}
