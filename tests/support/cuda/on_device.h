/* SPDX-License-Identifier: Apache-2.0
 *
 * on_device.h: what the tests of calls on CUDA tensors share: the driver, by dlopen and by its public functions only, so that a
 * GPU's and the fake one serve alike; memory; copies in a device's memory of operands and of all bytes around them. Header-only,
 * as tensors.h. No header of CUDA.
 *
 * QUERN_TEST_GPU=1: the machine's driver, and a test's large form; else, where QUERN_CUDA_PATH is not set, the fake driver of the
 * build (fake_cuda.h), and the small form: its kernels are compiled by c++, a few a second. */
#ifndef QUERN_TESTS_CUDA_DEVICE_H
#define QUERN_TESTS_CUDA_DEVICE_H

#include <dlfcn.h>
#include <unistd.h>

#include "expressions.h"
#include "fake_cuda.h"

typedef void *device_context, *device_stream, *device_graph, *device_event;

/* X(member, symbol, arguments): what each gives is 0 or the number of an error. The null stream is the legacy one. */
#define DEVICE_FUNCTIONS(X)                                                                                   \
  X(init, "cuInit", (unsigned flags))                                                                         \
  X(error_name, "cuGetErrorName", (int code, const char **text))                                              \
  X(device_count, "cuDeviceGetCount", (int *n))                                                               \
  X(device_name, "cuDeviceGetName", (char *name, int size, int device))                                       \
  X(device_attribute, "cuDeviceGetAttribute", (int *value, int attribute, int device))                        \
  X(primary_retain, "cuDevicePrimaryCtxRetain", (device_context *context, int device))                        \
  X(context_get, "cuCtxGetCurrent", (device_context *context))                                                \
  X(context_set, "cuCtxSetCurrent", (device_context context))                                                 \
  X(context_synchronize, "cuCtxSynchronize", (void))                                                          \
  X(memory_allocate, "cuMemAlloc_v2", (uint64_t *address, size_t bytes))                                      \
  X(memory_free, "cuMemFree_v2", (uint64_t address))                                                          \
  X(managed_allocate, "cuMemAllocManaged", (uint64_t *address, size_t bytes, unsigned flags))                 \
  X(pinned_allocate, "cuMemHostAlloc", (void **address, size_t bytes, unsigned flags))                        \
  X(pinned_free, "cuMemFreeHost", (void *address))                                                            \
  X(copy_to_device, "cuMemcpyHtoDAsync_v2", (uint64_t to, const void *from, size_t bytes, device_stream))     \
  X(copy_to_host, "cuMemcpyDtoHAsync_v2", (void *to, uint64_t from, size_t bytes, device_stream))             \
  X(stream_create, "cuStreamCreate", (device_stream *stream, unsigned flags))                                 \
  X(stream_destroy, "cuStreamDestroy_v2", (device_stream stream))                                             \
  X(stream_synchronize, "cuStreamSynchronize", (device_stream stream))                                        \
  X(stream_is_capturing, "cuStreamIsCapturing", (device_stream stream, int *status))                          \
  X(stream_wait, "cuStreamWaitEvent", (device_stream stream, device_event event, unsigned flags))             \
  X(capture_begin, "cuStreamBeginCapture_v2", (device_stream stream, int mode))                               \
  X(capture_end, "cuStreamEndCapture", (device_stream stream, device_graph *graph))                           \
  X(graph_nodes, "cuGraphGetNodes", (device_graph graph, void **nodes, size_t *n))                            \
  X(graph_make, "cuGraphInstantiateWithFlags", (device_graph *made, device_graph graph, unsigned long long))  \
  X(graph_launch, "cuGraphLaunch", (device_graph made, device_stream stream))                                 \
  X(graph_unmake, "cuGraphExecDestroy", (device_graph made))                                                  \
  X(graph_destroy, "cuGraphDestroy", (device_graph graph))                                                    \
  X(module_load, "cuModuleLoadData", (void **module, const void *image))                                      \
  X(module_function, "cuModuleGetFunction", (void **function, void *module, const char *name))                \
  X(launch, "cuLaunchKernel",                                                                                 \
    (void *function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned shared_bytes,       \
     device_stream stream, void **params, void **extra))                                                      \
  X(event_create, "cuEventCreate", (device_event *event, unsigned flags))                                     \
  X(event_destroy, "cuEventDestroy_v2", (device_event event))                                                 \
  X(event_record, "cuEventRecord", (device_event event, device_stream stream))

enum { DEVICE_NONBLOCKING = 1, DEVICE_MANAGED_GLOBAL = 1, DEVICE_CAPTURE_GLOBAL = 0, DEVICE_CAPTURE_THREAD = 1,
       DEVICE_CAPTURE_RELAXED = 2, DEVICE_MOST = 8 };

#define DEVICE_MEMBER(member, symbol, arguments) int(*member) arguments;
static struct {
  DEVICE_FUNCTIONS(DEVICE_MEMBER)
  int n_devices;
  device_context contexts[DEVICE_MOST];
  /* NULL where the driver is a real one. */
  fake_cuda_log_function *log;
  fake_cuda_clear_function *clear;
  fake_cuda_count_function *count;
  fake_cuda_plan_function *plan;
} cuda;

/* Whether the large form of a test is to run, and a number that the environment may set. */
UNUSED static int is_on_gpu(void) {
  const char *text = getenv("QUERN_TEST_GPU");
  return text && *text == '1';
}
UNUSED static int64_t number_from(const char *variable, int64_t usual) {
  const char *text = getenv(variable);
  return text ? strtoll(text, NULL, 0) : usual;
}

#define device_do(call)                                                                                   \
  do {                                                                                                    \
    const int device_code = (call);                                                                       \
    const char *device_word = NULL;                                                                       \
    if (device_code && cuda.error_name) cuda.error_name(device_code, &device_word);                       \
    if (device_code) bail("%s:%d: %s: %d %s", __FILE__, __LINE__, #call, device_code, device_word ? device_word : ""); \
  } while (0)

/* ---- The driver ------------------------------------------------------------------------------------------------- */

/* NULL, or why there is no device. Nothing is current on any thread then, and the library has not been called. */
UNUSED static const char *device_open(void) {
  static char why[600];
  char path[512] = "";
  if (!is_on_gpu() && !getenv("QUERN_CUDA_PATH")) {
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 8);
    path[n < 0 ? 0 : n] = 0;
    if (!strrchr(path, '/')) return "the fake driver is not found";
    strcpy(strrchr(path, '/'), "/fake");
    setenv("QUERN_CUDA_PATH", path, 1);
  }
  void *library = NULL;
  if (getenv("QUERN_CUDA_PATH")) {
    snprintf(path, sizeof path, "%s/libcuda.so.1", getenv("QUERN_CUDA_PATH"));
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  }
  if (!library) library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return snprintf(why, sizeof why, "%s", dlerror()), why;
#define DEVICE_FIND(member, symbol, arguments) \
  if (!(*(void **)&cuda.member = dlsym(library, symbol))) return snprintf(why, sizeof why, "%s is not in libcuda", symbol), why;
  DEVICE_FUNCTIONS(DEVICE_FIND)
  *(void **)&cuda.log = dlsym(library, "fake_cuda_log");
  *(void **)&cuda.clear = dlsym(library, "fake_cuda_clear");
  *(void **)&cuda.count = dlsym(library, "fake_cuda_count");
  *(void **)&cuda.plan = dlsym(library, "fake_cuda_plan");
  if (cuda.log && system("c++ --version >/dev/null 2>&1")) return "there is no c++ to compile the fake driver's kernels with";
  int code = cuda.init(0);
  if (!code) code = cuda.device_count(&cuda.n_devices);
  const char *word = NULL;
  if (code) return cuda.error_name(code, &word), snprintf(why, sizeof why, "no device: %d %s", code, word ? word : ""), why;
  if (cuda.n_devices < 1) return "no device";
  if (cuda.n_devices > DEVICE_MOST) cuda.n_devices = DEVICE_MOST;
  for (int i = 0; i < cuda.n_devices; i++) device_do(cuda.primary_retain(&cuda.contexts[i], i));
  char name[100] = "";
  cuda.device_name(name, sizeof name, 0);
  diag("%d device%s, the first is %s", cuda.n_devices, cuda.n_devices == 1 ? "" : "s", name);
  return NULL;
}

UNUSED static int is_fake(void) { return cuda.log != NULL; }

/* The start of a test: forgets the environment, makes the first device's context current, or skips all. */
UNUSED static void device_begin(void) {
  forget_environment();
  const char *why = device_open();
  if (why) skip_all("%s", why);
  device_do(cuda.context_set(cuda.contexts[0]));
}

/* How many kernels the fake driver was given. */
UNUSED static int n_kernels_loaded(void) {
  return cuda.count ? cuda.count("cuLibraryLoadData") + cuda.count("cuModuleLoadData") : 0;
}

/* ---- Memory ----------------------------------------------------------------------------------------------------- */

UNUSED static char *device_allocate(size_t bytes) {
  uint64_t address = 0;
  device_do(cuda.memory_allocate(&address, bytes ? bytes : 1));
  return (char *)(uintptr_t)address;
}

UNUSED static void device_free(void *memory) {
  if (memory) device_do(cuda.memory_free((uintptr_t)memory));
}

/* Both wait for all that the current context was given. */
UNUSED static void device_write(void *to, const void *from, size_t bytes) {
  if (bytes) device_do(cuda.copy_to_device((uintptr_t)to, from, bytes, NULL));
  device_do(cuda.context_synchronize());
}
UNUSED static void device_read(void *to, const void *from, size_t bytes) {
  device_do(cuda.context_synchronize());
  if (bytes) device_do(cuda.copy_to_host(to, (uintptr_t)from, bytes, NULL));
  device_do(cuda.context_synchronize());
}

/* ---- Workspaces ---------------------------------------------------------------------------------------------------- */

/* A workspace on the current device with a guard on both sides. */
enum { WORKSPACE_GUARD = 4096 };
typedef struct workspace {
  char *allocated;
  size_t bytes;
} workspace;

UNUSED static workspace workspace_make(size_t bytes, int offset, quern_call *call) {
  workspace w = {device_allocate(bytes + 2 * WORKSPACE_GUARD), bytes};
  char *fill = malloc(bytes + 2 * WORKSPACE_GUARD);
  memset(fill, 0x5a, bytes + 2 * WORKSPACE_GUARD);
  device_write(w.allocated, fill, bytes + 2 * WORKSPACE_GUARD);
  free(fill);
  call->workspace = w.allocated + WORKSPACE_GUARD + offset;
  call->workspace_bytes = bytes - (size_t)offset;
  return w;
}

UNUSED static int workspace_is_kept(const workspace *w) {
  char *got = malloc(w->bytes + 2 * WORKSPACE_GUARD);
  int n_bad = 0;
  device_read(got, w->allocated, w->bytes + 2 * WORKSPACE_GUARD);
  for (int i = 0; i < WORKSPACE_GUARD; i++) n_bad += got[i] != 0x5a || got[WORKSPACE_GUARD + w->bytes + (size_t)i] != 0x5a;
  free(got);
  return n_bad == 0;
}

/* ---- Operands on a device ---------------------------------------------------------------------------------------- */

/* An operand with all of its memory once more, on a device, where items lie at multiples of their size. Zero it before first
 * use. */
typedef struct mirror {
  DLTensor t;
  char *allocated, *memory; /* the operand's bytes are at `memory` */
  const operand *of;
  int is_shared; /* the memory is another mirror's */
} mirror;

/* The strides and the shape stay the operand's. */
UNUSED static void mirror_make(mirror *m, const operand *of, int device) {
  const ptrdiff_t at = (unsigned char *)of->t.data - body_of(of), size = ref_dtype_size(of->d);
  const ptrdiff_t lead = (size - (at % size + size) % size) % size;
  *m = (mirror){.t = of->t, .of = of, .allocated = device_allocate(body_bytes(of) + (size_t)lead)};
  m->memory = m->allocated + lead;
  m->t.device = (DLDevice){kDLCUDA, device};
  m->t.data = m->memory + at;
  device_write(m->memory, body_of(of), body_bytes(of));
}

/* A second view of memory: `of` is one of the memory of `base`'s operand. */
UNUSED static void mirror_share(mirror *m, const operand *of, const mirror *base) {
  *m = (mirror){.t = of->t, .of = base->of, .memory = base->memory, .is_shared = 1};
  m->t.device = base->t.device;
  m->t.data = m->memory + ((unsigned char *)of->t.data - body_of(base->of));
}

UNUSED static void mirror_free(mirror *m) {
  if (!m->is_shared) device_free(m->allocated);
  memset(m, 0, sizeof *m);
}

/* What is there now, to be freed. */
UNUSED static unsigned char *mirror_read(const mirror *m) {
  unsigned char *bytes = malloc(body_bytes(m->of) + 1);
  if (!bytes) bail("no memory");
  device_read(bytes, m->memory, body_bytes(m->of));
  return bytes;
}

/* Whether the device's bytes are the operand's, those around the elements, too; else what differs first. `t` is how the
 * operand lies. */
UNUSED static int mirror_same(const mirror *m, char *what, size_t size) {
  const operand *o = m->of;
  unsigned char *got = mirror_read(m);
  const unsigned char *wanted = body_of(o);
  const size_t n = body_bytes(o);
  const int is_same = memcmp(got, wanted, n) == 0;
  what[0] = 0;
  if (!is_same) {
    int64_t index[QUERN_MAX_NDIM + 1] = {0}, at = 0, n_bad = 0;
    do {
      const unsigned char *element = (const unsigned char *)ref_address(&o->t, index);
      const unsigned char *other = got + (element - wanted);
      if (ref_n_elements(&o->t) == 0 || memcmp(element, other, (size_t)ref_dtype_size(o->d)) == 0) continue;
      char a[80], b[80];
      if (!n_bad++)
        snprintf(what, size, "element %" PRId64 ": got %s, wanted %s", at, ref_text(o->d, ref_get(o->d, other), a),
                 ref_text(o->d, ref_get(o->d, element), b));
    } while (at++, ref_n_elements(&o->t) && ref_next_index(o->t.ndim, o->t.shape, index));
    size_t i = 0;
    while (got[i] == wanted[i]) i++;
    const size_t used = strlen(what);
    if (n_bad) snprintf(what + used, size - used, "; %" PRId64 " bad of %" PRId64, n_bad, ref_n_elements(&o->t));
    else snprintf(what, size, "byte %td from data, beside the elements, was written", wanted + i - (unsigned char *)o->t.data);
  }
  free(got);
  return is_same;
}

#endif
