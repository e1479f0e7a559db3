/* SPDX-License-Identifier: Apache-2.0
 * tags: memory threads
 *
 * t750-cuda-jit: CUDA kernels from a key to an image: compiled by NVRTC in the background, kept in memory and on disk, waited
 * for, forgotten; what keeps them from being made; forks, threads and contexts that end. On the fakes of tests/cuda, each case
 * in a process of its own. */
#include "jit_parts.h"

#include "runtime/core/simt/launch.h"
#include "runtime/cuda/cuda_image.h"
#include "runtime/cuda/cuda_nvrtc.h"
#include "runtime/cuda/cuda_target.h"
#include "cuda_parts.h"

enum { H = 90 };

static qn_code_request cuda_request(const char *canonical, int32_t capability) {
  qn_code_request request = request_of(canonical);
  request.target = &qn_cuda_target;
  request.capability = capability;
  return request;
}

/* x0 * x1 + n */
static qn_code *acquire_cuda(qn_jit *jit, int n) {
  char canonical[40];
  snprintf(canonical, sizeof canonical, "x0 * x1 + %d", n);
  const qn_code_request request = cuda_request(canonical, H);
  return qn_jit_acquire(jit, &request);
}

static qn_cuda_image *image_of(const qn_code *code) {
  return atomic_load_explicit(&((qn_code *)(uintptr_t)code)->image, memory_order_acquire);
}

static quern_status kernel_of_image(const qn_code *code, const qn_cuda_kernel_info **info) {
  qn_cuda_scope scope;
  *info = NULL;
  quern_status status = qn_cuda_enter(0, NULL, &scope);
  if (status) return status;
  status = qn_cuda_image_load(image_of(code), &scope, 256, info);
  qn_cuda_leave(&scope);
  return status;
}

/* Whether that kernel computes x0 * x1 + n on device 0. */
static int runs(const qn_cuda_kernel_info *info, int n) {
  enum { N = 3001 };
  static float x[2][N], out[N];
  static qn_launch launch;
  const qn_cuda_driver *d = the_fake();
  const uint8_t sizes[] = {4, 4, 4};
  qn_nest nest = {.rank = 1, .n_operands = 3, .n_elements = N, .n = {N}};
  qn_cuda_address at[3];
  qn_cuda_scope scope;
  uint32_t width, height;
  int n_wrong = 0;
  if (!info || qn_cuda_enter(0, NULL, &scope)) return 0;
  for (int i = 0; i < N; i++) x[0][i] = (float)(i - 11), x[1][i] = (float)(3 * i % 100), out[i] = -1;
  for (int k = 0; k < 3; k++) {
    nest.stride[k][0] = 4;
    if (d->memory_allocate(&at[k], sizeof out)) return 0;
    if (k < 2) d->copy_to_device(at[k], x[k], sizeof out, NULL);
  }
  qn_launch_form form = {.rank = 1, .n_operands = 3};
  qn_launch_pack(&nest, sizes, 1, 0, &form, 0, &launch);
  for (int k = 0; k < 3; k++) launch.args[k] = at[k];
  qn_launch_block(&launch, &width, &height);
  void *params[] = {launch.args};
  const uint32_t blocks = qn_launch_grid(&launch, (uint32_t)info->items_per_thread, 8);
  n_wrong += d->launch(info->function, blocks, 1, 1, width, height, 1, 0, NULL, params, NULL) != 0;
  n_wrong += d->copy_to_host(out, at[2], sizeof out, NULL) != 0;
  for (int i = 0; i < N; i++) n_wrong += out[i] != x[0][i] * x[1][i] + (float)n;
  for (int k = 0; k < 3; k++) d->memory_free(at[k]);
  qn_cuda_leave(&scope);
  return n_wrong == 0;
}

static int loads_and_runs(const qn_code *code, int n) {
  const qn_cuda_kernel_info *info;
  return image_of(code) && !kernel_of_image(code, &info) && runs(info, n);
}

/* ---- Keys ---- */

static void has_keys(void) {
  static const uint8_t dtypes[] = {QN_F16, QN_BOOL, QN_F64}, classes[] = {QN_CLASS_TILED, QN_CLASS_BROADCAST, QN_CLASS_STRIDED};
  qn_code_request request = {.target = &qn_cuda_target, .canonical = "x0 + x1", .specs = {1, 2}, .n_in = 2, .n_out = 1,
                             .dtypes = dtypes, .classes = classes,
                             .rank = 0, .capability = 100, .is_wide = 1};
  char *key = qn_code_key(&request);
  CHECK(!strcmp(key, "x0 + x1\nf16,bool > f64\nnd tbs\nspecs 00000000000000010000000000000002\ncuda sm_100 i64\n"));
  free(key);
  request.is_wide = 0, request.rank = 3, request.specs = (qn_digest){0, 0}, request.capability = 2147483647;
  key = qn_code_key(&request);
  CHECK(!strcmp(key, "x0 + x1\nf16,bool > f64\n3d tbs\nspecs -\ncuda sm_2147483647\n"));
  free(key);
  request.target = &qn_cpu_target, request.capability = 0, request.rank = 1;
  key = qn_code_key(&request);
  CHECK(!strcmp(key, "x0 + x1\nf16,bool > f64\n1d tbs\nspecs -\n"));
  free(key);
}

/* ---- Making ---- */

static void compiles(void) {
  heard h = HEARD_START;
  subject s = subject_make(QUERN_JIT_SYNC, &h);
  quern_set_last_error("kept");
  errno = 77;
  qn_code *code = acquire_cuda(s.jit, 5);
  CHECK(errno == 77 && !strcmp(quern_last_error(), "kept"));
  qn_code_info info = info_of(code);
  CHECK(image_of(code) && !kernel_of(code));
  CHECK_HAS(info.tier, "nvrtc");
  CHECK_HAS(info.reason, "compiled by nvrtc in ");
  CHECK(info.compiles == 1 && info.compile_ms > 0 && info.bytes == qn_cuda_image_size(image_of(code)));
  CHECK(!strncmp(info.name, "qj_", 3));
  CHECK_INT(n_compiled(&h), 1);
  CHECK_INT(h.n_warnings, 0);
  CHECK(!current_context());
  CHECK_INT(n_calls("cuDevicePrimaryCtxRetain"), 0); /* to compile needs no device */
  CHECK(loads_and_runs(code, 5));
  qn_code *again = acquire_cuda(s.jit, 5);
  CHECK(again == code && n_compiled(&h) == 1);
  qn_code_release(again);
  qn_code_request request = cuda_request("x0 * x1 + 5", 80);
  qn_code *other = qn_jit_acquire(s.jit, &request);
  CHECK(other != code && image_of(other));
  qn_code_release(other);
  request.capability = H, request.is_wide = 1, request.rank = 0;
  other = qn_jit_acquire(s.jit, &request);
  CHECK(other != code && image_of(other) && n_compiled(&h) == 3);
  qn_code_wait(other);
  qn_code_release(other);
  qn_code_release(code);
  subject_end(&s);
}

static void obeys_mode_off(void) {
  subject s = subject_make(QUERN_JIT_OFF, NULL);
  qn_code *code = acquire_cuda(s.jit, 5);
  qn_code_wait(code);
  CHECK(!image_of(code));
  CHECK_HAS(info_of(code).reason, "compiling at run time is off");
  qn_code_release(code);
  subject_end(&s);
}

static void waits(void) {
  subject s = subject_make(QUERN_JIT_ASYNC, NULL);
  qn_code *code[4];
  for (int i = 0; i < 4; i++) code[i] = acquire_cuda(s.jit, i);
  CHECK(!image_of(code[3]));
  quern_set_last_error("kept");
  errno = 77;
  qn_code_wait(code[3]);
  CHECK(errno == 77 && !strcmp(quern_last_error(), "kept"));
  CHECK(image_of(code[3]) && !image_of(code[2]) && !image_of(code[1])); /* overtaken */
  for (int i = 0; i < 4; i++) qn_code_wait(code[i]);
  for (int i = 0; i < 4; i++) CHECK(loads_and_runs(code[i], i));
  for (int i = 0; i < 4; i++) qn_code_release(code[i]);
  subject_end(&s);
}

/* A log on the background thread wants another kernel, and waits for it: in vain. */
static qn_jit *logging;
static qn_code *wanted_in_log;
static void want_in_log(void *arg, const char *said) {
  (void)arg;
  if (!strstr(said, "compiled by") || wanted_in_log) return;
  wanted_in_log = acquire_cuda(logging, 7);
  qn_code_wait(wanted_in_log);
}

static void waits_in_log(void) {
  heard h = HEARD_START;
  h.also = want_in_log;
  subject s = subject_make(QUERN_JIT_ASYNC, &h);
  logging = s.jit;
  qn_code *code = acquire_cuda(s.jit, 5);
  qn_code_wait(code);
  while (n_compiled(&h) < 2) usleep(1000);
  CHECK(image_of(code) && image_of(wanted_in_log));
  qn_code_release(code), qn_code_release(wanted_in_log);
  subject_end(&s);
}

/* ---- What bounds a compile ---- */

/* TERM0) + TERM1) + ...; static. */
static const char *sum_of(const char *term, int n) {
  static char text[65536];
  size_t at = 0;
  for (int k = 0; k < n; k++) at += (size_t)snprintf(text + at, sizeof text - at, "%s%s%d)", k ? " + " : "", term, k);
  return text;
}

/* A large kernel: 1024 instructions and more by the estimate. */
static qn_code *acquire_large(qn_jit *jit, int n) {
  const qn_code_request request = cuda_request(sum_of("pow(x0 * x1, x0 + ", n), H);
  return qn_jit_acquire(jit, &request);
}

static void wait_for_compile(const qn_code *code) {
  for (int ms = 0; ms < 5000 && strcmp(info_of(code).reason, "being compiled"); ms += 5) usleep(5000);
  usleep(300000); /* its text is made, and NVRTC asked */
}

static void refuses_what_costs(void) {
  subject s = subject_with((quern_options){.jit = QUERN_JIT_SYNC, .cache_dir = ""}, NULL);
  qn_generator_limit(s.generator, 0, 50, 0);
  qn_code *code = acquire_large(s.jit, 20), *other = acquire_cuda(s.jit, 5);
  CHECK(!image_of(code) && info_of(code).compiles == 0);
  CHECK_HAS(info_of(code).reason, "more than 50 (compile_cost_limit)");
  qn_code_release(code), qn_code_release(other);
  subject_end(&s);
}

static void takes_too_long(void) {
  subject s = subject_with((quern_options){.jit = QUERN_JIT_SYNC, .cache_dir = "", .compile_ms_limit = 50}, NULL);
  const double start = now_ms();
  qn_code *code = acquire_cuda(s.jit, 5);
  CHECK(!image_of(code) && now_ms() - start < 3000);
  CHECK_HAS(info_of(code).reason, "NVRTC took longer than a compile may (compile_ms_limit)");
  qn_code_release(code);
  subject_end(&s);
}

/* The others' waits end with it; what is asked for again is compiled. */
static void is_cancelled(void) {
  heard h = HEARD_START;
  subject s = subject_make(QUERN_JIT_ASYNC, &h);
  qn_code *code = acquire_cuda(s.jit, 5);
  wait_for_compile(code);
  const double start = now_ms();
  qn_jit_cancel(s.jit);
  while (!strcmp(info_of(code).reason, "being compiled") && now_ms() - start < 5000) usleep(1000);
  CHECK(now_ms() - start < 1000 && !image_of(code));
  CHECK_HAS(info_of(code).reason, "cancelled");
  unsetenv("FAKE_NVRTC_HOLD");
  qn_code_wait(code);
  CHECK(image_of(code));
  CHECK_INT(h.n_warnings, 0);
  qn_code_release(code);
  subject_end(&s);
}

/* A large compile, and a small one beside it; the context is released, and the large one ends. */
static void compiles_beside(void) {
  subject large = subject_make(QUERN_JIT_ASYNC, NULL), small = subject_make(QUERN_JIT_SYNC, NULL);
  qn_code *code = acquire_large(large.jit, 12);
  wait_for_compile(code);
  CHECK_HAS(info_of(code).reason, "being compiled");
  double start = now_ms();
  qn_code *other = acquire_cuda(small.jit, 5);
  CHECK(image_of(other) && now_ms() - start < 5000);
  start = now_ms();
  subject_end(&large);
  CHECK(now_ms() - start < 1000);
  while (!strcmp(info_of(code).reason, "being compiled") && now_ms() - start < 5000) usleep(1000);
  CHECK(now_ms() - start < 1000 && !image_of(code));
  qn_code_release(code), qn_code_release(other);
  subject_end(&small);
}

static subject ending;
static void ends_at_once(void) {
  ending = subject_make(QUERN_JIT_ASYNC, NULL);
  wait_for_compile(acquire_large(ending.jit, 12));
}

/* NVRTC 13 and later: a compile of seconds ends within one of the request. */
static void ends_in_earnest(void) {
  char why[1024];
  quern_status status;
  if (!qn_nvrtc_is_there(why, sizeof why) || !qn_cuda_compiler(&status)->set_flow_callback) {
    fprintf(findings, "none: %s", qn_cuda_compiler(&status) ? "it is older than CUDA 13" : why);
    return;
  }
  subject s = subject_with((quern_options){.jit = QUERN_JIT_ASYNC, .cache_dir = ""}, NULL);
  qn_generator_limit(s.generator, 0, 1 << 20, 0);
  qn_code *code = acquire_large(s.jit, 40);
  wait_for_compile(code);
  CHECK_HAS(info_of(code).reason, "being compiled");
  const double start = now_ms();
  qn_jit_cancel(s.jit);
  while (!strcmp(info_of(code).reason, "being compiled") && now_ms() - start < 20000) usleep(1000);
  CHECK_HAS(info_of(code).reason, "cancelled");
  if (now_ms() - start > 3000) fprintf(findings, "it ends after %.0f ms; ", now_ms() - start);
  qn_code_release(code);
  subject_end(&s);
}

/* What the machine's own NVRTC makes, where there is one: the fake driver cannot load it. */
static void compiles_in_earnest(void) {
  char why[1024];
  if (!qn_nvrtc_is_there(why, sizeof why)) {
    fprintf(findings, "none: %s", why);
    return;
  }
  subject s = subject_make(QUERN_JIT_SYNC, NULL);
  qn_code *code = acquire_cuda(s.jit, 5);
  const qn_cuda_kernel_info *info;
  CHECK(image_of(code));
  CHECK_HAS(info_of(code).reason, "compiled by nvrtc in ");
  if (image_of(code)) CHECK_INT(kernel_of_image(code, &info), QUERN_E_COMPILER);
  CHECK_HAS(quern_last_error(), "CUDA_ERROR_INVALID_IMAGE");
  qn_code_release(code);
  subject_end(&s);
}

/* ---- What keeps a kernel from being made ---- */

static void lacks(const char *why, const char *hears, int n_warnings) {
  heard h = HEARD_START;
  subject s = subject_make(QUERN_JIT_SYNC, &h);
  qn_code *code = acquire_cuda(s.jit, 5), *again = acquire_cuda(s.jit, 5);
  CHECK(code == again && !image_of(code));
  qn_code_wait(code);
  CHECK_HAS(info_of(code).reason, why);
  CHECK(!info_of(code).tier[0] && info_of(code).compiles <= 1);
  CHECK_INT(h.n_warnings, n_warnings);
  if (n_warnings) CHECK_HAS(h.warning, hears);
  qn_code_release(code), qn_code_release(again);
  subject_end(&s);
}

static void lacks_driver(void) { lacks("no compiler: CUDA cannot be used: no device: CUDA_ERROR_NO_DEVICE", "", 0); }
static void lacks_nvrtc(void) { lacks("no compiler: NVRTC cannot be used: ", "", 0); }
static void fails_to_compile(void) {
  lacks("nvrtc: nvrtcCompileProgram: NVRTC_ERROR_COMPILATION", "not compiled: nvrtc: nvrtcCompileProgram", 1);
}

static void knows_no_such_chip(void) {
  heard h = HEARD_START;
  subject s = subject_make(QUERN_JIT_SYNC, &h);
  const qn_code_request request = cuda_request("x0 * x1 + 5", 70);
  qn_code *code = qn_jit_acquire(s.jit, &request);
  CHECK(!image_of(code));
  CHECK_HAS(info_of(code).reason, "nvrtc: NVRTC 13.0 compiles for compute capability 7.5 at least; the device has 7.0");
  const qn_code_request wrong = cuda_request("none ( x0 , x1 )", H);
  qn_code *other = qn_jit_acquire(s.jit, &wrong);
  CHECK(!image_of(other) && info_of(other).reason[0]);
  CHECK_INT(h.n_warnings, 2);
  qn_code_release(code), qn_code_release(other);
  subject_end(&s);
}

/* ---- Disk ---- */

static char cache[300];

static const char *tier_with_cache(int n) {
  static char got[40];
  subject s = subject_with((quern_options){.jit = QUERN_JIT_SYNC, .cache_dir = cache}, NULL);
  qn_code *code = acquire_cuda(s.jit, n);
  snprintf(got, sizeof got, "%s", info_of(code).tier);
  CHECK(loads_and_runs(code, n));
  qn_code_release(code);
  subject_end(&s);
  return got;
}

static void starts_cold(void) { CHECK_HAS(tier_with_cache(5), "nvrtc"); }

static void starts_warm(void) {
  char state[512];
  CHECK_HAS(tier_with_cache(5), "disk");
  qn_cuda_state(state, sizeof state);
  CHECK_HAS(state, "NVRTC not loaded yet");
  CHECK_HAS(qn_generator_state(), "not loaded yet");
}

/* Made by another compiler than the one that is open. */
static void minds_its_compiler(void) {
  char why[200];
  CHECK(qn_nvrtc_is_there(why, sizeof why));
  CHECK_HAS(tier_with_cache(5), "nvrtc");
}

/* Every byte of the entry is damaged in turn, some of them: a miss each time, and nothing worse. */
static void misses_what_is_damaged(void) {
  char path[600] = "", command[700];
  static char bytes[1 << 20];
  snprintf(command, sizeof command, "find '%s' -type f", cache);
  FILE *list = popen(command, "r");
  CHECK(list && fgets(path, sizeof path, list));
  pclose(list);
  path[strcspn(path, "\n")] = 0;
  FILE *file = fopen(path, "r");
  const size_t size = file ? fread(bytes, 1, sizeof bytes, file) : 0;
  if (file) fclose(file);
  CHECK(size > 1000);
  subject s = subject_with((quern_options){.jit = QUERN_JIT_ASYNC, .cache_dir = cache}, NULL);
  subject_end(&s);
  for (size_t at = 0; at < size; at += size / 40) {
    bytes[at] ^= 0x10;
    file = fopen(path, "w");
    CHECK(file && fwrite(bytes, 1, size, file) == size && !fclose(file));
    bytes[at] ^= 0x10;
    /* What does not come from disk would be compiled: with no compiler it is a failure with a reason. */
    s = subject_with((quern_options){.jit = QUERN_JIT_SYNC, .cache_dir = cache}, NULL);
    qn_code *code = acquire_cuda(s.jit, 5);
    CHECK(!image_of(code) && strstr(info_of(code).reason, "NVRTC_ERROR_INVALID_PROGRAM"));
    qn_code_release(code);
    subject_end(&s);
  }
  file = fopen(path, "w");
  CHECK(file && fwrite(bytes, 1, size, file) == size && !fclose(file));
}

/* ---- What is written ---- */

static char dump_folder[300], record_file[300];

/* A file of the dump, with the kernel's name in it made "qj_"; "": it is not there. Of the last five. */
static char *dumped(const char *name, const char *suffix) {
  static char texts[5][1 << 18];
  static int turn;
  char path[700], *text = memset(texts[turn++ % 5], 0, sizeof texts[0]), *at;
  snprintf(path, sizeof path, "%s/%s%s", dump_folder, name, suffix);
  FILE *file = fopen(path, "r");
  if (file && fread(text, 1, sizeof texts[0] - 1, file) == 0) bail("%s cannot be read", path);
  if (file) fclose(file);
  while ((at = strstr(text, name))) memmove(at + 3, at + strlen(name), strlen(at + strlen(name)) + 1);
  return text;
}

static void writes(void) {
  struct stat recorded;
  mkdir(dump_folder, 0700);
  setenv("QUERN_DUMP", dump_folder, 1);
  setenv("QUERN_RECORD", record_file, 1);
  subject s = subject_make(QUERN_JIT_SYNC, NULL);
  qn_code_request request = cuda_request("x0 * x1 + 5", H);
  qn_code *code = qn_jit_acquire(s.jit, &request);
  request.is_wide = 1;
  qn_code *wide = qn_jit_acquire(s.jit, &request);
  request.capability = 70;
  qn_code *failed = qn_jit_acquire(s.jit, &request);
  CHECK(image_of(code) && image_of(wide) && !image_of(failed));
  char *text = dumped(info_of(code).name, ".cu"), *wide_text = dumped(info_of(wide).name, ".cu");
  CHECK_HAS(text, "extern \"C\" __global__");
  CHECK(wide_text[0] && strcmp(text, wide_text));
  CHECK(!dumped(info_of(code).name, ".c")[0] && !dumped(info_of(code).name, ".log")[0]);
  CHECK_HAS(dumped(info_of(failed).name, ".log"), "NVRTC 13.0 compiles for ");
  CHECK(stat(record_file, &recorded) && errno == ENOENT); /* there is no kernel to record */
  CHECK(!qn_jit_record(s.jit, record_file));
  CHECK(!stat(record_file, &recorded) && recorded.st_size <= (long)sizeof "quern-record 1\n");
  qn_code_release(code), qn_code_release(wide), qn_code_release(failed);
  subject_end(&s);
}

/* ---- Memory ---- */

static int n_loads(void) { return n_calls("cuLibraryLoadData") + n_calls("cuModuleLoadData"); }
static int n_unloads(void) { return n_calls("cuLibraryUnload") + n_calls("cuModuleUnload"); }

/* Forgotten at once; what the driver has loaded stays, and is not loaded again. */
static void forgets(void) {
  heard h = HEARD_START;
  const qn_cuda_kernel_info *info = NULL;
  subject s = subject_with((quern_options){.jit = QUERN_JIT_SYNC, .cache_dir = cache, .kernel_memory_limit = 1}, &h);
  qn_code *code = acquire_cuda(s.jit, 5), *held = acquire_cuda(s.jit, 6);
  CHECK(loads_and_runs(code, 5) && loads_and_runs(held, 6));
  CHECK(!kernel_of_image(code, &info));
  forget_calls();
  qn_code_release(code);
  CHECK(runs(info, 5)); /* as a graph would, that somebody has captured */
  CHECK(image_of(held));
  code = acquire_cuda(s.jit, 5);
  CHECK_HAS(info_of(code).tier, "disk"); /* it was forgotten */
  CHECK(loads_and_runs(code, 5));
  CHECK_INT(n_loads(), 0);
  CHECK_INT(n_unloads(), 0);
  qn_code *again = acquire_cuda(s.jit, 6);
  CHECK(again == held);
  qn_code_release(code), qn_code_release(held), qn_code_release(again);
  subject_end(&s);
}

/* Code that is held outlives its context. */
static void outlives(void) {
  subject s = subject_make(QUERN_JIT_SYNC, NULL);
  qn_code *code = acquire_cuda(s.jit, 5);
  CHECK(loads_and_runs(code, 5));
  subject_end(&s);
  CHECK(loads_and_runs(code, 5));
  qn_code_wait(code);
  qn_code_release(code);
  /* and a context that ends while its kernel is compiled waits for nothing but the generator */
  s = subject_make(QUERN_JIT_ASYNC, NULL);
  code = acquire_cuda(s.jit, 9);
  usleep(50000);
  subject_end(&s);
  qn_code_wait(code);
  qn_code_release(code);
}

/* ---- Threads and forks ---- */

static subject both[2];
static void *make_there(void *arg) {
  const int i = (int)(intptr_t)arg;
  qn_code *code = acquire_cuda(both[i % 2].jit, i / 2 % 2);
  qn_code_wait(code);
  const qn_cuda_kernel_info *info = NULL;
  const int is_good = image_of(code) && !kernel_of_image(code, &info) && info;
  qn_code_release(code);
  return (void *)(intptr_t)is_good;
}

static void compiles_from_threads(void) {
  pthread_t threads[8];
  heard h = HEARD_START;
  both[0] = subject_make(QUERN_JIT_SYNC, &h), both[1] = subject_make(QUERN_JIT_ASYNC, &h);
  for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, make_there, (void *)(intptr_t)i);
  for (int i = 0; i < 8; i++) {
    void *is_good = NULL;
    pthread_join(threads[i], &is_good);
    CHECK(is_good);
  }
  subject_end(&both[0]), subject_end(&both[1]);
  CHECK_INT(n_compiled(&h), 4);
}

static void forks(void) {
  subject s = subject_make(QUERN_JIT_ASYNC, NULL);
  qn_code *made = acquire_cuda(s.jit, 5);
  qn_code_wait(made);
  qn_code *under_way = acquire_cuda(s.jit, 6);
  usleep(50000);
  const pid_t pid = fork();
  if (pid == 0) {
    const qn_cuda_kernel_info *info;
    int bad = !image_of(made) || kernel_of_image(made, &info) != QUERN_E_DEVICE;
    qn_code_wait(under_way);
    bad |= 2 * (image_of(under_way) || !strstr(info_of(under_way).reason, "forked"));
    qn_code *other = acquire_cuda(s.jit, 7);
    qn_code_wait(other);
    bad |= 4 * (image_of(other) || !strstr(info_of(other).reason, "forked"));
    qn_code_release(made), qn_code_release(under_way), qn_code_release(other);
    subject_end(&s);
    if (!freopen("/dev/null", "w", stdout)) _exit(250);
    LEAVE_CHILD(bad);
  }
  CHECK_INT(status_of(pid), 0);
  qn_code_wait(under_way);
  CHECK(loads_and_runs(made, 5) && loads_and_runs(under_way, 6));
  qn_code_release(made), qn_code_release(under_way);
  subject_end(&s);
}

/* The process ends while a kernel is compiled, with others in the queue. */
static void ends(void) {
  static qn_code *held[4];
  both[0] = subject_make(QUERN_JIT_ASYNC, NULL);
  for (int i = 0; i < 4; i++) held[i] = acquire_cuda(both[0].jit, i);
  CHECK(held[3]);
  usleep(50000);
}

/* ---- */

static void good(void (*body)(void), const char *what) { is_str(run_case(fakes, NULL, NULL, body), "", "%s", what); }

static void good_with(const char *a, void (*body)(void), const char *what) {
  is_str(run_case(fakes, a, NULL, body), "", "%s", what);
}

int main(void) {
  char without_nvrtc[300], own_nvrtc[300], command[2000];
  find_fakes();
  setenv("QUERN_CACHE_DIR", "none", 1);
  unsetenv("QUERN_JIT"), unsetenv("QUERN_CC"), unsetenv("QUERN_DUMP"), unsetenv("QUERN_RECORD");
  const char *tmp = getenv("TMPDIR");
  snprintf(scratch, sizeof scratch, "%.200s/quern-jit.XXXXXX", tmp ? tmp : "/tmp");
  if (!mkdtemp(scratch)) bail("no scratch folder");
  snprintf(cache, sizeof cache, "%s/cache", scratch);
  snprintf(dump_folder, sizeof dump_folder, "%s/dump", scratch);
  snprintf(record_file, sizeof record_file, "%s/record", scratch);
  snprintf(without_nvrtc, sizeof without_nvrtc, "%s/driver", scratch);
  snprintf(command, sizeof command, "mkdir '%s' && ln -s '%s/libcuda.so.1' '%s' && touch '%s/libnvrtc.so.12' '%s/libnvrtc.so.13'",
           without_nvrtc, fakes, without_nvrtc, without_nvrtc, without_nvrtc);
  if (system(command)) bail("%s cannot be made", without_nvrtc);

  snprintf(own_nvrtc, sizeof own_nvrtc, "%s/own", scratch);
  snprintf(command, sizeof command, "mkdir '%s' && ln -s '%s/libcuda.so.1' '%s'", own_nvrtc, fakes, own_nvrtc);
  if (system(command)) bail("%s cannot be made", own_nvrtc);

  good(has_keys, "keys");
  good(obeys_mode_off, "mode off");
  good_with("FAKE_CUDA_DEVICES=0", lacks_driver, "no device");
  is_str(run_case(without_nvrtc, NULL, NULL, lacks_nvrtc), "", "no NVRTC");
  good_with("FAKE_NVRTC_FAIL=nvrtcCompileProgram:1:6", fails_to_compile, "NVRTC refuses the text");
  good(knows_no_such_chip, "a chip that NVRTC does not know, an op that there is not");
  const char *earnest = run_case(own_nvrtc, NULL, NULL, compiles_in_earnest);
  if (!strncmp(earnest, "none: ", 6)) skip(1, "no NVRTC: %s", earnest + 6);
  else is_str(earnest, "", "the machine's own NVRTC takes a kernel");
  earnest = run_case(own_nvrtc, NULL, NULL, ends_in_earnest);
  if (!strncmp(earnest, "none: ", 6)) skip(1, "no NVRTC that can be ended: %s", earnest + 6);
  else is_str(earnest, "", "the machine's own NVRTC ends when it is asked to");
  good(refuses_what_costs, "what costs too much is not given to NVRTC");
  good_with("FAKE_NVRTC_HOLD=20000/x0", takes_too_long, "a compile that takes longer than it may");
  const double before = now_ms();
  good_with("FAKE_NVRTC_HOLD=20000/q_table_pow", ends_at_once, "a process ends while NVRTC compiles");
  ok(now_ms() - before < 5000, "  and waits for little: %.0f ms", now_ms() - before);
  if (system("c++ --version >/dev/null 2>&1")) {
    skip(15, "there is no c++ to compile kernels with");
    leave_parts();
    return done_testing();
  }
  good(compiles, "a kernel is compiled when it is wanted");
  good(waits, "who waits overtakes");
  good(waits_in_log, "the background thread does not wait for itself");
  good(starts_cold, "the disk has it not");
  good(starts_warm, "the disk has it: neither NVRTC nor the generator is opened");
  good_with("FAKE_NVRTC_FAIL=nvrtcCreateProgram:1:4", starts_warm, "  indeed");
  good_with("FAKE_CUDA_VERSION=13010", starts_cold, "not for another driver");
  good(starts_warm, "  the first one's is there still");
  good(forgets, "what is over the limit is forgotten, but not unloaded");
  good_with("FAKE_NVRTC_VERSION=13.1", minds_its_compiler, "another compiler is open: it compiles anew");
  good(writes, "sources and messages are written, records are not");
  good(outlives, "code outlives its context");
  good(compiles_from_threads, "threads of two contexts");
  if (UNDER_TSAN) skip(1, "TSan does not let a forked child start a thread");
  else good(forks, "a process forks while it compiles");
  good(ends, "a process ends while it compiles");
  good_with("FAKE_NVRTC_HOLD=20000/x0", is_cancelled, "a compile under way is cancelled");
  good_with("FAKE_NVRTC_HOLD=20000/q_table_pow", compiles_beside, "a small compile beside a large one of a context that ends");
  snprintf(command, sizeof command, "rm -rf '%s'", cache);
  if (system(command)) bail("%s is left", cache);
  good(starts_cold, "a cache with one entry");
  good_with("FAKE_NVRTC_FAIL=nvrtcCreateProgram:1+:4", misses_what_is_damaged, "  which is damaged");
  good(starts_warm, "  and repaired");
  leave_parts();
  return done_testing();
}
