/* SPDX-License-Identifier: Apache-2.0
 * tags: memory threads
 *
 * t748-cuda-image: contexts as a call finds and leaves them, what a device is like, NVRTC from text to image, images that are
 * damaged, and loading them: on the fakes of tests/cuda, each case in a process of its own, with a driver that has libraries
 * and an old one that has modules only. */
#include <pthread.h>
#include <sys/stat.h>

#include "runtime/cuda/cuda_context.h"
#include "runtime/cuda/cuda_image.h"
#include "runtime/cuda/cuda_nvrtc.h"
#include "cuda_parts.h"

/* ---- Contexts ---- */

static int is_old(void) { return strstr(getenv("QUERN_CUDA_PATH"), "/fake-old") != NULL; }
static void *const everybodys[] = {NULL, (void *)1, (void *)2};

/* The context that a call would work in; NULL: none. */
static qn_cuda_context entered(int ordinal, void *stream) {
  qn_cuda_scope scope;
  const qn_cuda_context before = current_context();
  if (qn_cuda_enter(ordinal, stream, &scope)) {
    CHECK(current_context() == before);
    return NULL;
  }
  CHECK(current_context() == scope.context);
  CHECK(scope.ordinal == ordinal && scope.device == ordinal && scope.driver == the_fake());
  CHECK((scope.id == 0) == is_old());
  qn_cuda_leave(&scope);
  CHECK(current_context() == before);
  return scope.context;
}

static void chooses_contexts(void) {
  const qn_cuda_driver *d = the_fake();
  qn_cuda_context primary[2], popped;
  CHECK(!current_context());
  plan_failures("%s", "");
  primary[0] = entered(0, NULL), primary[1] = entered(1, (void *)2);
  CHECK(primary[0] && primary[1] && primary[0] != primary[1]);
  CHECK(entered(0, (void *)1) == primary[0]);
  CHECK_INT(n_calls("cuDevicePrimaryCtxRetain"), 2);
  CHECK_INT(n_calls("cuDevicePrimaryCtxRelease"), 0);
  CHECK_INT(n_calls("cuCtxPushCurrent"), 3);
  CHECK_INT(n_calls("cuCtxPopCurrent"), 3);
  const qn_cuda_context own = make_context(0);
  forget_calls();
  for (int i = 0; i < 3; i++) {
    CHECK(entered(0, everybodys[i]) == own);
    CHECK_INT(n_calls("cuCtxPushCurrent"), i);
    CHECK(entered(1, everybodys[i]) == primary[1]);
  }
  CHECK_INT(n_calls("cuCtxSetCurrent"), 0);
  const qn_cuda_stream stream = make_stream();
  forget_calls();
  CHECK(entered(0, stream) == own);
  CHECK_INT(n_calls("cuCtxPushCurrent"), 0);
  d->context_push(primary[0]);
  CHECK(entered(0, stream) == own);
  CHECK(entered(0, NULL) == primary[0]);
  d->context_pop(&popped), d->context_pop(&popped);
  CHECK(popped == own && !current_context());
  CHECK(entered(0, stream) == own);
  errno = 77;
  CHECK(!entered(1, stream));
  CHECK_INT(errno, 77);
  CHECK_HAS(quern_last_error(), "the stream is of cuda:0, the operands are on cuda:1");
  qn_cuda_scope scope;
  CHECK_INT(qn_cuda_enter(1, stream, &scope), QUERN_E_DEVICE);
  CHECK_INT(qn_cuda_enter(2, NULL, &scope), QUERN_E_DEVICE);
  CHECK_HAS(quern_last_error(), "cuda:2: there is no such device, only 2");
  CHECK_INT(qn_cuda_enter(-1, NULL, &scope), QUERN_E_DEVICE);
  CHECK(!current_context());
}

/* A context's place is used again: its number is not. */
static void tells_contexts_apart(void) {
  qn_cuda_scope first, second;
  const qn_cuda_context own = make_context(0);
  CHECK(!qn_cuda_enter(0, NULL, &first));
  qn_cuda_leave(&first);
  FAKE("cuCtxDestroy_v2", (qn_cuda_context), own);
  CHECK(make_context(0) == own);
  CHECK(!qn_cuda_enter(0, NULL, &second));
  CHECK(first.context == second.context && (is_old() || first.id != second.id));
}

/* Every call fails in turn, with nothing current, with another device's context, with a stream. */
static void enters_or_fails(void) {
  static const struct { const char *code; quern_status status; } ends[] = {
    {"ILLEGAL_ADDRESS", QUERN_E_DRIVER}, {"OUT_OF_MEMORY", QUERN_E_MEMORY}, {"INVALID_CONTEXT", QUERN_E_DRIVER}};
  the_fake();
  const qn_cuda_context other = make_context(1), own = make_context(0);
  const qn_cuda_stream stream = make_stream();
  qn_cuda_context popped;
  the_fake()->context_pop(&popped);
  int n = 0;
  for (size_t e = 0; e < 3; e++) {
    for (int where = 0; where < 4; where++) {
      const qn_cuda_context before = where < 2 ? other : NULL;
      if (where == 2) the_fake()->context_pop(&popped);
      for (int k = 1;; k++) {
        qn_cuda_scope scope;
        plan_failures("*:%d:%s", k, ends[e].code);
        quern_set_last_error("");
        const quern_status status = qn_cuda_enter(0, where & 1 ? stream : NULL, &scope);
        const int is_over = n_calls("*") < k;
        plan_failures("%s", "");
        if (!status) qn_cuda_leave(&scope);
        CHECK(current_context() == before);
        if (is_over) {
          CHECK_INT(status, 0);
          break;
        }
        n++;
        /* the thread's capture mode, changed around what retains the primary context, is a courtesy */
        CHECK(status == ends[e].status || (!status && e == 0 && where == 0));
        if (status) CHECK_HAS(quern_last_error(), "cuda:0: cu");
        if (status) CHECK_HAS(quern_last_error(), ends[e].code);
      }
    }
    the_fake()->context_push(other);
  }
  CHECK(n > 40 && own);
}

static void knows_devices(void) {
  const qn_cuda_facts *facts = NULL, *again = NULL;
  the_fake();
  int k = 1;
  for (;; k++) {
    plan_failures("*:%d:UNKNOWN", k);
    const quern_status status = qn_cuda_device_facts(1, &facts);
    if (n_calls("*") < k) break;
    CHECK_INT(status, QUERN_E_DRIVER);
    CHECK_HAS(quern_last_error(), "cuda:1: cuDeviceGet");
  }
  CHECK(k > 7 && facts);
  CHECK_INT(facts->capability, 80);
  CHECK_INT(facts->multiprocessors, 3);
  CHECK_INT(facts->threads_per_multiprocessor, 2048);
  CHECK_INT(facts->l2_bytes, 1 << 20);
  CHECK_INT(facts->max_grid, 0x7fffffff);
  CHECK_HAS(facts->name, "Fake 1");
  plan_failures("%s", "");
  CHECK(!qn_cuda_device_facts(1, &again) && again == facts);
  CHECK_INT(n_calls("*"), 0);
  CHECK(!qn_cuda_device_facts(0, &again) && again->capability == 90);
  CHECK_INT(qn_cuda_device_facts(2, &again), QUERN_E_DEVICE);
  CHECK(!current_context());
}

static void knows_captures(void) {
  const qn_cuda_driver *d = the_fake();
  make_context(0);
  const qn_cuda_stream stream = make_stream();
  CHECK(!qn_cuda_is_capturing(d, stream) && !qn_cuda_is_capturing(d, NULL));
  begin_capture(stream, CAPTURE_GLOBAL);
  CHECK(qn_cuda_is_capturing(d, stream) && !qn_cuda_is_capturing(d, (void *)2));
  d->stream_synchronize(stream); /* which is not allowed */
  CHECK(qn_cuda_is_capturing(d, stream));
  CHECK(end_capture(stream) != 0);
  CHECK(!qn_cuda_is_capturing(d, stream));
  plan_failures("cuStreamIsCapturing:1:STREAM_CAPTURE_IMPLICIT,cuStreamIsCapturing:2:UNKNOWN");
  CHECK(qn_cuda_is_capturing(d, NULL));
  CHECK(!qn_cuda_is_capturing(d, NULL));
}

/* A primary context is made although a capture is under way, which goes on. */
static void retains_in_captures(void) {
  the_fake();
  make_context(0);
  const qn_cuda_stream stream = make_stream();
  int mode = CAPTURE_THREAD_LOCAL;
  the_fake()->capture_mode(&mode);
  begin_capture(stream, CAPTURE_GLOBAL);
  forget_calls();
  CHECK(entered(1, NULL));
  CHECK_HAS(calls(), "cuThreadExchangeStreamCaptureMode 2\ncuDevicePrimaryCtxRetain 1\ncuThreadExchangeStreamCaptureMode 1\n");
  CHECK_INT(end_capture(stream), 0);
}

static pthread_barrier_t barrier;
static void *enter_there(void *unused) {
  (void)unused;
  qn_cuda_scope scope;
  pthread_barrier_wait(&barrier);
  if (qn_cuda_enter(1, NULL, &scope)) return NULL;
  qn_cuda_leave(&scope);
  return scope.context;
}

static void enters_from_threads(void) {
  pthread_t threads[8];
  void *each[8];
  the_fake();
  pthread_barrier_init(&barrier, NULL, 8);
  for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, enter_there, NULL);
  for (int i = 0; i < 8; i++) pthread_join(threads[i], &each[i]);
  for (int i = 0; i < 8; i++) CHECK(each[i] && each[i] == each[0]);
  CHECK_INT(n_calls("cuDevicePrimaryCtxRetain") - n_calls("cuDevicePrimaryCtxRelease"), 1);
}

/* ---- From text to image ---- */

static const char text[] =
    "typedef unsigned char u8; typedef short i16; typedef unsigned short u16; typedef int i32; typedef unsigned u32;\n"
    "typedef long long i64; typedef unsigned long long u64; typedef float f32; typedef double f64;\n"
    "typedef u16 f16_s; typedef u16 bf16_s;\n"
    "#if defined(QC_HOST)\n#include \"cuda_host.h\"\n#endif\n"
    "struct args { u64 x, y, n; };\n"
    "extern \"C\" __global__ void __launch_bounds__(256) twice(const __grid_constant__ args a) {\n"
    "  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < a.n; i += (u64)gridDim.x * blockDim.x)\n"
    "    ((f32 *)a.y)[i] = __fmul_rn(2.0f, ((const f32 *)a.x)[i]);\n"
    "}\n";

static char scratch[] = "/tmp/t748.XXXXXX", why[4096];

static qn_bytes compiled(const char *source, int capability) {
  const qn_nvrtc_request request = {.source = source, .name = "twice.cu", .capability = capability, .items_per_thread = 4};
  qn_bytes image = {NULL, 0};
  const int is_good = qn_nvrtc_compile(&request, &image, why, sizeof why);
  CHECK(is_good == (image.data != NULL));
  return image;
}

static void put(const char *name, const qn_bytes *image) {
  char path[64];
  snprintf(path, sizeof path, "%s/%s", scratch, name);
  FILE *file = fopen(path, "w");
  if (!file || fwrite(image->data, 1, image->size, file) != image->size || fclose(file)) bail("%s cannot be written", path);
}

/* What another case has compiled, with another turn. */
static qn_cuda_image *image_of(const char *name, int turn) {
  char path[64];
  static char bytes[1 << 20];
  snprintf(path, sizeof path, "%s/%s", scratch, name);
  FILE *file = fopen(path, "r");
  const size_t size = file ? fread(bytes, 1, sizeof bytes, file) : 0;
  if (file) fclose(file);
  qn_cuda_code code;
  if (!qn_cuda_image_parse(bytes, size, &code, why, sizeof why)) bail("%s: %s", name, why);
  code.items_per_thread = turn;
  qn_bytes packed = qn_cuda_image_pack(&code);
  qn_cuda_image *image = qn_cuda_image_make(packed.data, packed.size, "twice", why, sizeof why);
  if (!image) bail("%s", why);
  free(packed.data);
  return image;
}

static void compiles(void) {
  char identity[2048] = "";
  qn_cuda_code code;
  CHECK(!qn_nvrtc_identity(identity, sizeof identity));
  errno = 77;
  qn_bytes image = compiled(text, 90);
  CHECK_INT(errno, 77);
  if (!image.data) {
    fprintf(findings, "%s", why);
    return;
  }
  put("90", &image);
  CHECK(qn_cuda_image_parse(image.data, image.size, &code, why, sizeof why));
  CHECK(code.capability == 90 && code.items_per_thread == 4 && !code.is_ptx);
  CHECK(((const fake_cubin *)(const void *)code.data)->text_hash == fake_hash(text));
  CHECK(qn_nvrtc_identity(identity, sizeof identity));
  CHECK_HAS(identity, "nvrtc 13.0; ");
  CHECK_HAS(identity, "/fake/libnvrtc.so.13 ");
  CHECK(!qn_nvrtc_identity(identity, 20));
  free(image.data);
  image = compiled(text, 80);
  put("80", &image);
  free(image.data);
  image = compiled("extern \"C\" __global__ void k() { wrong; }", 90);
  CHECK(!image.data);
  CHECK_HAS(why, "error: ");
  image = compiled(text, 70);
  CHECK(!image.data);
  CHECK_HAS(why, "NVRTC 13.0 compiles for compute capability 7.5 at least; the device has 7.0");
}

static void compiles_to_ptx(void) {
  qn_cuda_code code;
  qn_bytes image = compiled(text, 90);
  CHECK(image.data && qn_cuda_image_parse(image.data, image.size, &code, why, sizeof why));
  if (!image.data) return;
  CHECK(code.is_ptx && code.capability == 90);
  CHECK_INT(((const fake_cubin *)(const void *)code.data)->arch, 80);
  put("ptx", &image);
  free(image.data);
}

/* Once it is known that an option is not known it is not tried again. */
static void compiles_without_option(void) {
  for (int i = 0; i < 2; i++) {
    qn_bytes image = compiled(text, 90);
    CHECK(image.data);
    free(image.data);
  }
}

static void fails_to_compile(void) {
  static const char *const functions[] = {"nvrtcGetNumSupportedArchs", "nvrtcGetSupportedArchs", "nvrtcCreateProgram",
                                          "nvrtcCompileProgram", "nvrtcGetCUBINSize", "nvrtcGetCUBIN"};
  char plan_text[80], word[64];
  for (int i = 0; i < 6; i++) {
    snprintf(plan_text, sizeof plan_text, "%s:1:4", functions[i]);
    snprintf(word, sizeof word, "%s", i == 0 ? "nvrtcGetSupportedArchs" : functions[i]);
    int status = 0;
    fflush(findings);
    const pid_t pid = fork(); /* so that the fake counts from 1 */
    if (pid == 0) {
      setenv("FAKE_NVRTC_FAIL", plan_text, 1);
      qn_bytes image = compiled(text, 90);
      _exit(image.data ? 1 : !strstr(why, word) ? 2 : !strstr(why, "NVRTC_ERROR_INVALID_PROGRAM") ? 3 : 0);
    }
    waitpid(pid, &status, 0);
    CHECK_INT(status, 0);
  }
}

static void *compile_one(void *turn) {
  const qn_nvrtc_request request = {.source = text, .name = "twice.cu", .capability = 90, .items_per_thread = (int)(intptr_t)turn};
  qn_bytes image = {NULL, 0};
  char own_why[256];
  qn_cuda_code code = {0};
  if (qn_nvrtc_compile(&request, &image, own_why, sizeof own_why))
    qn_cuda_image_parse(image.data, image.size, &code, own_why, sizeof own_why);
  const int got = code.items_per_thread;
  free(image.data);
  return (void *)(intptr_t)got;
}

static void compiles_from_threads(void) {
  pthread_t threads[3];
  for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, compile_one, (void *)(intptr_t)(i + 1));
  for (int i = 0; i < 3; i++) {
    void *got = NULL;
    pthread_join(threads[i], &got);
    CHECK_INT((intptr_t)got, i + 1);
  }
}

/* A process that exits waits for its compile; a forked child of one that compiles neither hangs nor compiles. */
static void ends_while_compiling(void) {
  pthread_t thread;
  int status = -1;
  const char *trouble = NULL;
  CHECK(qn_nvrtc_is_there(why, sizeof why));
  pthread_create(&thread, NULL, compile_one, (void *)1);
  usleep(20000);
  const pid_t pid = fork();
  if (pid == 0) {
    qn_bytes image = {NULL, 0};
    const qn_nvrtc_request request = {.source = text, .name = "twice.cu", .capability = 90, .items_per_thread = 4};
    if (qn_nvrtc_compile(&request, &image, why, sizeof why)) trouble = "compiled";
    else if (!strstr(why, "forked")) trouble = why;
    if (!freopen("/dev/null", "w", stdout)) _exit(250);
    fclose(findings); /* what the parent has found so far is nothing */
    LEAVE_CHILD(trouble != NULL);
  }
  waitpid(pid, &status, 0);
  CHECK_INT(status, 0);
  pthread_detach(thread);
}

/* ---- Damage ---- */

static void refuses(const char *bytes, size_t size) {
  qn_cuda_image *image;
  why[0] = 0;
  if ((image = qn_cuda_image_make(bytes, size, "twice", why, sizeof why))) {
    fprintf(findings, "taken; ");
    qn_cuda_image_free(image);
  } else if (!strstr(why, "this is no kernel for CUDA: ")) {
    fprintf(findings, "no reason; ");
  }
}

static void refuses_damage(void) {
  const qn_cuda_code cubin = {"cubin of some bytes", 19, 0, 90, 2}, ptx = {"// ptx", 7, 1, 80, 1};
  qn_cuda_code code;
  for (int i = 0; i < 2; i++) {
    const qn_cuda_code *wanted = i ? &ptx : &cubin;
    qn_bytes good = qn_cuda_image_pack(wanted);
    CHECK(qn_cuda_image_parse(good.data, good.size, &code, why, sizeof why));
    CHECK(code.size == wanted->size && !memcmp(code.data, wanted->data, code.size));
    CHECK(code.items_per_thread == wanted->items_per_thread);
    CHECK(code.capability == wanted->capability && code.is_ptx == wanted->is_ptx);
    for (size_t at = 0; at < good.size; at++) {
      for (int bit = 0; bit < 8; bit++) {
        char *bad = memcpy(malloc(good.size), good.data, good.size); /* of this size, for ASan */
        bad[at] ^= (char)(1 << bit);
        refuses(bad, good.size);
        free(bad);
      }
      char *less = memcpy(malloc(at + 1), good.data, at);
      refuses(less, at);
      free(less);
    }
    char *more = calloc(1, good.size + 1);
    refuses(memcpy(more, good.data, good.size), good.size + 1);
    free(more);
    free(good.data);
  }
  refuses("", 0);
  /* Sound, but without sense. */
  static const qn_cuda_code odd[] = {{"x", 1, 0, 90, 0}, {"x", 1, 0, 90, 65}, {"x", 1, 0, 10000, 1}, {"x", 1, 0, -1, 1},
                                     {"x", 1, 2, 90, 1}, {"x", 1, 1, 90, 1}, {"", 0, 0, 90, 1}};
  for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
    qn_bytes bytes = qn_cuda_image_pack(&odd[i]);
    refuses(bytes.data, bytes.size);
    free(bytes.data);
  }
  qn_bytes good = qn_cuda_image_pack(&cubin);
  CHECK(!qn_cuda_image_make(good.data, good.size,
                            "a_name_of_far_more_than_sixty_four_letters_is_more_than_any_kernel_here_has", why, sizeof why));
  CHECK_HAS(why, "too long");
  qn_cuda_image *image = qn_cuda_image_make(good.data, good.size, "k", why, sizeof why);
  CHECK(image && qn_cuda_image_size(image) >= good.size);
  qn_cuda_image_free(image);
  qn_cuda_image_free(NULL);
  free(good.data);
}

/* ---- Loading ---- */

static int n_loads(void) { return n_calls("cuLibraryLoadData") + n_calls("cuModuleLoadData"); }
static int n_unloads(void) { return n_calls("cuLibraryUnload") + n_calls("cuModuleUnload"); }

/* NOTFOUND: it is not loaded there, and may_load is 0. */
static quern_status kernel_in(qn_cuda_image *image, int ordinal, int may_load, const qn_cuda_kernel_info **info) {
  qn_cuda_scope scope;
  *info = NULL;
  quern_status status = qn_cuda_enter(ordinal, NULL, &scope);
  if (status) return status;
  if (may_load)
    status = qn_cuda_image_load(image, &scope, 256, info);
  else
    status = (*info = qn_cuda_image_find(image, &scope, 256)) ? QUERN_OK : QUERN_E_NOTFOUND;
  qn_cuda_leave(&scope);
  return status;
}

static void runs(const qn_cuda_kernel_info *info) {
  const qn_cuda_driver *d = the_fake();
  enum { N = 700 };
  float x[N], y[N];
  int n_wrong = 0;
  qn_cuda_scope scope;
  qn_cuda_address a = 0, b = 0;
  CHECK(!qn_cuda_enter(0, NULL, &scope));
  for (int i = 0; i < N; i++) x[i] = (float)i;
  CHECK(!d->memory_allocate(&a, sizeof x) && !d->memory_allocate(&b, sizeof y));
  CHECK(!d->copy_to_device(a, x, sizeof x, NULL));
  struct { uint64_t x, y, n; } args = {a, b, N};
  void *params[] = {&args};
  CHECK(!d->launch(info->function, 2, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
  CHECK(!d->copy_to_host(y, b, sizeof y, NULL));
  for (int i = 0; i < N; i++) n_wrong += y[i] != 2 * (float)i;
  CHECK_INT(n_wrong, 0);
  qn_cuda_leave(&scope);
}

static void loads(void) {
  the_fake();
  qn_cuda_image *image = image_of("90", 3);
  const qn_cuda_kernel_info *info, *again;
  CHECK_INT(kernel_in(image, 0, 0, &info), QUERN_E_NOTFOUND);
  CHECK_INT(n_loads(), 0);
  errno = 77;
  CHECK_INT(kernel_in(image, 0, 1, &info), QUERN_OK);
  CHECK_INT(errno, 77);
  CHECK_INT(n_loads(), 1);
  if (!info) return;
  CHECK(info->items_per_thread == 3 && info->registers == 32 && info->local_bytes == 0 && info->blocks_per_multiprocessor == 8);
  runs(info);
  qn_cuda_scope scope;
  CHECK(!qn_cuda_enter(0, NULL, &scope));
  forget_calls();
  CHECK((again = qn_cuda_image_find(image, &scope, 256)) == info);
  CHECK(!qn_cuda_image_load(image, &scope, 256, &again) && again == info);
  CHECK_INT(n_calls("*"), 0);
  CHECK(!qn_cuda_image_find(image, &scope, 128));
  CHECK(!qn_cuda_image_load(image, &scope, 128, &again) && again->blocks_per_multiprocessor == 16);
  qn_cuda_leave(&scope);
  /* Another context of that device. */
  make_context(0);
  forget_calls();
  CHECK_INT(kernel_in(image, 0, 0, &again), QUERN_E_NOTFOUND);
  CHECK(!kernel_in(image, 0, 1, &again) && again != info);
  CHECK_INT(n_loads(), is_old());
  CHECK_INT(n_calls("cuKernelGetFunction"), !is_old());
  /* Forgotten and wanted again. */
  forget_calls();
  qn_cuda_image_free(image);
  image = image_of("90", 3);
  CHECK(!kernel_in(image, 0, 0, &again) && again);
  qn_cuda_image *other = image_of("90", 1);
  CHECK(!kernel_in(other, 0, 1, &again) && again->items_per_thread == 1);
  CHECK_INT(n_loads(), 1);
  CHECK_INT(n_unloads(), 0);
  qn_cuda_image_free(image), qn_cuda_image_free(other);
}

static void loads_on_its_chip_only(void) {
  the_fake();
  qn_cuda_image *image = image_of("90", 1), *other = image_of("80", 1);
  const qn_cuda_kernel_info *info;
  CHECK_INT(kernel_in(image, 1, 1, &info), QUERN_E_COMPILER);
  CHECK_HAS(quern_last_error(), "twice: cu");
  CHECK_HAS(quern_last_error(), "CUDA_ERROR_NO_BINARY_FOR_GPU: no kernel image is available");
  CHECK_INT(kernel_in(other, 0, 1, &info), QUERN_E_COMPILER);
  CHECK_INT(kernel_in(image, 0, 1, &info), QUERN_OK);
  CHECK_INT(kernel_in(other, 1, 1, &info), QUERN_OK);
  qn_cuda_image_free(image), qn_cuda_image_free(other);
  image = image_of("ptx", 1);
  CHECK_INT(kernel_in(image, 1, 1, &info), QUERN_OK);
  CHECK_INT(kernel_in(image, 0, 1, &info), QUERN_OK);
  qn_cuda_image_free(image);
}

/* Captures elsewhere go on, and the thread's mode is as it was. */
static void loads_beside_captures(void) {
  the_fake();
  make_context(0);
  const qn_cuda_stream stream = make_stream();
  for (int own = 0; own < 2; own++) {
    qn_cuda_image *image = image_of("90", 5 + own);
    const qn_cuda_kernel_info *info;
    int mode = own;
    the_fake()->capture_mode(&mode);
    CHECK_INT(begin_capture(stream, CAPTURE_GLOBAL), 0);
    CHECK_INT(kernel_in(image, 0, 1, &info), QUERN_OK);
    CHECK_INT(end_capture(stream), 0);
    mode = 0;
    the_fake()->capture_mode(&mode);
    CHECK_INT(mode, own);
    qn_cuda_image_free(image);
  }
}

/* Every call fails in turn. The first and the last are about the thread's capture mode, a courtesy: without it all goes well. */
static void loads_or_fails(void) {
  static const struct { const char *code; quern_status status; } ends[] = {
    {"ILLEGAL_ADDRESS", QUERN_E_DRIVER}, {"OUT_OF_MEMORY", QUERN_E_MEMORY}, {"INVALID_IMAGE", QUERN_E_COMPILER},
    {"STREAM_CAPTURE_UNSUPPORTED", QUERN_E_CAPTURING}, {"INVALID_PTX", QUERN_E_COMPILER}};
  const qn_cuda_kernel_info *info;
  qn_cuda_scope scope;
  const qn_cuda_context here = make_context(0);
  for (size_t e = 0; e < sizeof ends / sizeof ends[0]; e++) {
    qn_cuda_image *image = image_of("90", 10 + (int)e), *other = image_of("90", 20 + (int)e);
    int k = 2, n = 0, mode = 0;
    CHECK(!qn_cuda_enter(0, NULL, &scope));
    for (;; k++) {
      plan_failures("*:%d:%s", k, ends[e].code);
      const quern_status status = qn_cuda_image_load(image, &scope, 256, &info);
      n = n_calls("*");
      if (!status) break;
      CHECK_INT(status, ends[e].status);
      CHECK_HAS(quern_last_error(), "twice: cu");
      CHECK_HAS(quern_last_error(), ends[e].code);
      plan_failures("%s", "");
      the_fake()->capture_mode(&mode);
      CHECK_INT(mode, 0);
    }
    CHECK(n == k && k >= (is_old() ? 8 : 7)); /* the last one failed; a library stays loaded */
    plan_failures("*:1:%s", ends[e].code);
    CHECK_INT(qn_cuda_image_load(other, &scope, 256, &info), QUERN_OK);
    plan_failures("%s", "");
    mode = 0;
    the_fake()->capture_mode(&mode);
    qn_cuda_leave(&scope);
    qn_cuda_image_free(image), qn_cuda_image_free(other);
  }
  CHECK(current_context() == here);
}

/* What only one of its calls fails of is not left behind. */
static void leaves_nothing_behind(void) {
  static const char *const after[] = {"cuModuleGetFunction", "cuFuncGetAttribute", "cuOccupancyMaxActiveBlocksPerMultiprocessor",
                                      "cuLibraryGetKernel"};
  const qn_cuda_kernel_info *info;
  the_fake();
  for (int i = 0; i < 4; i++) {
    qn_cuda_image *image = image_of("90", 20 + i);
    plan_failures("%s:1:UNKNOWN", after[i]);
    const quern_status status = kernel_in(image, 0, 1, &info);
    if (n_calls(after[i])) {
      CHECK_INT(status, QUERN_E_DRIVER);
      const int keeps = !is_old() && i < 3; /* a library is the process's: it is found again */
      CHECK_INT(n_loads() - n_unloads(), keeps);
      plan_failures("%s", "");
      CHECK_INT(kernel_in(image, 0, 1, &info), QUERN_OK);
      CHECK_INT(n_loads(), !keeps);
    }
    qn_cuda_image_free(image);
  }
  CHECK(!current_context());
}

/* Where libraries go into all contexts at once another chip refuses: then it is a module. */
static void loads_as_module(void) {
  the_fake();
  qn_cuda_image *image = image_of("90", 1);
  const qn_cuda_kernel_info *info;
  plan_failures("cuLibraryLoadData:1+:NO_BINARY_FOR_GPU");
  CHECK_INT(kernel_in(image, 0, 1, &info), QUERN_OK);
  CHECK_INT(n_calls("cuModuleLoadData"), 1);
  if (info) runs(info);
  qn_cuda_image_free(image);
}

static void forgets_destroyed_contexts(void) {
  the_fake();
  qn_cuda_image *image = image_of("90", 1);
  const qn_cuda_kernel_info *info;
  const qn_cuda_context own = make_context(0);
  CHECK_INT(kernel_in(image, 0, 1, &info), QUERN_OK);
  FAKE("cuCtxDestroy_v2", (qn_cuda_context), own);
  CHECK(make_context(0) == own);
  CHECK_INT(kernel_in(image, 0, 0, &info), is_old() ? QUERN_OK : QUERN_E_NOTFOUND);
  qn_cuda_image_free(image);
}

static qn_cuda_image *shared;
static void *load_there(void *ordinal) {
  const qn_cuda_kernel_info *info;
  pthread_barrier_wait(&barrier);
  return kernel_in(shared, (int)(intptr_t)ordinal, 1, &info) ? NULL : (void *)(uintptr_t)info;
}

static void loads_from_threads(void) {
  pthread_t threads[8];
  void *each[8];
  the_fake();
  for (int turn = 1; turn < 20; turn++) {
    shared = image_of("ptx", turn);
    forget_calls();
    pthread_barrier_init(&barrier, NULL, 8);
    for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, load_there, (void *)(intptr_t)(i % 2));
    for (int i = 0; i < 8; i++) pthread_join(threads[i], &each[i]);
    for (int i = 0; i < 8; i++) CHECK(each[i] && each[i] == each[i % 2]);
    CHECK(each[0] != each[1]);
    CHECK_INT(n_loads() - n_unloads(), 1 + is_old());
    pthread_barrier_destroy(&barrier);
    qn_cuda_image_free(shared);
  }
  CHECK(!current_context());
}

static void forks(void) {
  the_fake();
  qn_cuda_image *image = image_of("90", 1), *other = image_of("90", 2);
  const qn_cuda_kernel_info *info;
  qn_cuda_scope scope;
  int status = -1;
  CHECK_INT(kernel_in(image, 0, 1, &info), QUERN_OK);
  CHECK(!qn_cuda_enter(0, NULL, &scope));
  const pid_t pid = fork();
  if (pid == 0) {
    int bad = kernel_in(image, 0, 1, &info) != QUERN_E_DEVICE || !strstr(quern_last_error(), "forked");
    bad |= 2 * (qn_cuda_image_load(other, &scope, 256, &info) != QUERN_E_DEVICE);
    const qn_cuda_facts *facts;
    bad |= 4 * (qn_cuda_device_facts(0, &facts) != QUERN_E_DEVICE);
    qn_cuda_leave(&scope);
    qn_cuda_image_free(image), qn_cuda_image_free(other);
    _exit(bad);
  }
  waitpid(pid, &status, 0);
  CHECK_INT(status, 0);
  qn_cuda_leave(&scope);
  CHECK_INT(kernel_in(other, 0, 1, &info), QUERN_OK);
  qn_cuda_image_free(image), qn_cuda_image_free(other);
}

/* A context that has died says so. */
static void meets_dead_contexts(void) {
  the_fake();
  qn_cuda_image *image = image_of("90", 1);
  const qn_cuda_kernel_info *info;
  plan_failures("*:1+:ILLEGAL_ADDRESS");
  CHECK_INT(kernel_in(image, 0, 1, &info), QUERN_E_DRIVER);
  CHECK_HAS(quern_last_error(), "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered");
  plan_failures("%s", "");
  CHECK(!current_context());
  qn_cuda_image_free(image);
}

/* ---- */

static void good(const char *folder, void (*body)(void), const char *what) {
  is_str(run_case(folder, NULL, NULL, body), "", "%s%s", what, folder == old_fakes ? ": an old driver" : "");
}

int main(void) {
  find_fakes();
  if (!mkdtemp(scratch)) bail("no folder in /tmp");
  const char *const both[] = {fakes, old_fakes};
  for (int i = 0; i < 2; i++) {
    good(both[i], chooses_contexts, "the context of a call");
    good(both[i], tells_contexts_apart, "a context where another was");
    good(both[i], enters_or_fails, "every call fails in turn on the way into a context");
    good(both[i], knows_devices, "what a device is like");
    good(both[i], knows_captures, "captures");
    good(both[i], retains_in_captures, "a primary context is made beside a capture");
    is_str(run_case(both[i], "FAKE_CUDA_SLOW=cuDevicePrimaryCtxRetain", NULL, enters_from_threads), "",
           "threads retain the primary context at once");
  }
  good(fakes, refuses_damage, "images that are damaged");
  if (system("c++ --version >/dev/null 2>&1")) {
    skip(25, "there is no c++ to compile kernels with");
    return done_testing();
  }
  good(fakes, compiles, "a text becomes an image");
  is_str(run_case(fakes, "FAKE_NVRTC_ARCHS=2", NULL, compiles_to_ptx), "", "PTX for a chip that is newer than NVRTC");
  is_str(run_case(fakes, "FAKE_NVRTC_UNKNOWN=--minimal", "FAKE_NVRTC_FAIL=nvrtcCompileProgram:4:6", compiles_without_option),
         "", "an NVRTC that does not know --minimal, and is asked once");
  good(fakes, fails_to_compile, "NVRTC fails");
  good(fakes, compiles_from_threads, "threads compile at once");
  good(fakes, ends_while_compiling, "a process forks and ends while it compiles");
  for (int i = 0; i < 2; i++) {
    good(both[i], loads, "an image is loaded once");
    good(both[i], loads_on_its_chip_only, "on the chip that it is for");
    good(both[i], loads_beside_captures, "beside captures");
    good(both[i], loads_or_fails, "every call fails in turn on the way to a kernel");
    good(both[i], leaves_nothing_behind, "what failed is not left behind");
    good(both[i], forgets_destroyed_contexts, "a context is destroyed");
    good(both[i], loads_from_threads, "threads load at once");
    good(both[i], forks, "a forked child");
    good(both[i], meets_dead_contexts, "a context that has died");
  }
  good(fakes, loads_as_module, "libraries that are loaded eagerly");
  char command[64];
  snprintf(command, sizeof command, "rm -rf %s", scratch);
  if (system(command)) diag("%s is left", scratch);
  return done_testing();
}
