/* SPDX-License-Identifier: Apache-2.0
 *
 * fake_cuda.c: libcuda.so.1 for machines without a GPU, opened by way of QUERN_CUDA_PATH. Kernels are what fake NVRTC made,
 * and run on the CPU. Device memory is the host's, but can be touched only while its device works (a stray access is
 * SIGSEGV). Work is done when it is submitted, or kept by a stream that is being captured. One lock for all. Two devices:
 * sm_90 and sm_80. Not done: order between streams (there is none to get wrong), capture across streams by events.
 * FAKE_CUDA_OLD: a driver of CUDA 11.2. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "fake_cuda.h"
#include "grid.h"

#define EXPORT __attribute__((visibility("default")))
enum { MOST_DEVICES = 8, PAGE = 4096, MOST_ARGS = 16 };

static const struct { int code; const char *name, *text; } errors[] = {
  {0, "SUCCESS", "no error"}, {1, "INVALID_VALUE", "invalid argument"}, {2, "OUT_OF_MEMORY", "out of memory"},
  {3, "NOT_INITIALIZED", "initialization error"}, {34, "STUB_LIBRARY", "CUDA driver is a stub library"},
  {100, "NO_DEVICE", "no CUDA-capable device is detected"}, {101, "INVALID_DEVICE", "invalid device ordinal"},
  {200, "INVALID_IMAGE", "device kernel image is invalid"}, {201, "INVALID_CONTEXT", "invalid device context"},
  {209, "NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
  {218, "INVALID_PTX", "a PTX JIT compilation failed"}, {400, "INVALID_HANDLE", "invalid resource handle"},
  {500, "NOT_FOUND", "named symbol not found"}, {700, "ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
  {701, "LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
  {719, "LAUNCH_FAILED", "unspecified launch failure"}, {803, "SYSTEM_DRIVER_MISMATCH", "system has unsupported display driver"},
  {900, "STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
  {901, "STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"},
  {906, "STREAM_CAPTURE_IMPLICIT", "operation would make the legacy stream depend on a capturing blocking stream"},
  {908, "STREAM_CAPTURE_WRONG_THREAD", "attempt to terminate a thread-local capture sequence from another thread"},
  {999, "UNKNOWN", "unknown error"},
};
enum {
  INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_DEVICE = 101, INVALID_IMAGE = 200,
  INVALID_CONTEXT = 201,
  NO_BINARY = 209, INVALID_HANDLE = 400, NOT_FOUND = 500, CAPTURE_UNSUPPORTED = 900, CAPTURE_INVALIDATED = 901,
  CAPTURE_IMPLICIT = 906,
  CAPTURE_WRONG_THREAD = 908
};

/* ---- Calls: the lock, the log, the plan ---- */

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pid_t initialised_by; /* 0: no process */
static char *log_text, plan[512], counted[64][44];
static size_t log_size, log_room;
static int counts[64], n_all, n_devices = 2, version = 13000, is_configured;

static void configure(void) {
  const char *text;
  is_configured = 1;
  if ((text = getenv("FAKE_CUDA_DEVICES"))) n_devices = atoi(text);
#if defined(FAKE_CUDA_OLD)
  version = 11020;
#endif
  if ((text = getenv("FAKE_CUDA_VERSION"))) version = atoi(text);
  if ((text = getenv("FAKE_CUDA_FAIL"))) snprintf(plan, sizeof plan, "%s", text);
  if (n_devices > MOST_DEVICES) n_devices = MOST_DEVICES;
}

static void append(const char *line) {
  const size_t n = strlen(line);
  const char *path = getenv("FAKE_CUDA_LOG");
  if (log_size + n + 1 > log_room) log_text = realloc(log_text, log_room = 2 * (log_size + n) + 4096);
  memcpy(log_text + log_size, line, n + 1);
  log_size += n;
  FILE *file = path ? fopen(path, "ae") : NULL;
  if (file) fputs(line, file), fclose(file);
}

static int code_named(const char *name) {
  for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
    if (!strcmp(errors[i].name, name)) return errors[i].code;
  fprintf(stderr, "fake_cuda: no error is called %s\n", name);
  abort();
}

static int planned_for(const char *function, int nth) {
  char copy[sizeof plan], *rest = copy, *entry;
  strcpy(copy, plan);
  while ((entry = strsep(&rest, ","))) {
    char name[44], which[16], code[48];
    if (sscanf(entry, "%43[^:]:%15[^:]:%47s", name, which, code) != 3 || strcmp(name, function)) continue;
    if (strchr(which, '+') ? nth >= atoi(which) : nth == atoi(which)) return code_named(code);
  }
  return 0;
}

/* Takes the lock. What the plan has for this call, or 0. */
__attribute__((format(printf, 2, 3))) static int enter(const char *function, const char *format, ...) {
  char line[400];
  int k = 0, n = snprintf(line, sizeof line, "%s", function), code;
  const char *slow = getenv("FAKE_CUDA_SLOW");
  va_list args;
  if (slow && !strcmp(slow, function)) usleep(50000);
  pthread_mutex_lock(&lock);
  if (!is_configured) configure();
  va_start(args, format);
  vsnprintf(line + n, sizeof line - (size_t)n - 1, format, args);
  va_end(args);
  append(strcat(line, "\n"));
  while (k < 63 && counted[k][0] && strcmp(counted[k], function)) k++;
  snprintf(counted[k], sizeof counted[k], "%s", function);
  counts[k]++, n_all++;
  code = planned_for(function, counts[k]);
  if (!code) code = planned_for("*", n_all);
  if (!code && initialised_by != getpid() && strcmp(function, "cuInit") && strcmp(function,
      "cuDriverGetVersion")) code = NOT_INITIALIZED;
  return code;
}
static int leave(int code) {
  pthread_mutex_unlock(&lock);
  return code;
}
#define CALL(...)                            \
  do {                                       \
    const int planned = enter(__VA_ARGS__);  \
    if (planned) return leave(planned);      \
  } while (0)

EXPORT const char *fake_cuda_log(void) { return log_text ? log_text : ""; }
EXPORT void fake_cuda_clear(void) {
  pthread_mutex_lock(&lock);
  log_size = 0, n_all = 0;
  if (log_text) log_text[0] = 0;
  memset(counted, 0, sizeof counted), memset(counts, 0, sizeof counts);
  pthread_mutex_unlock(&lock);
}
EXPORT int fake_cuda_count(const char *function) {
  for (int k = 0; k < 64; k++)
    if (!strcmp(counted[k], function)) return counts[k];
  return strcmp(function, "*") ? 0 : n_all;
}
EXPORT void fake_cuda_plan(const char *text) {
  fake_cuda_clear();
  is_configured = 1;
  snprintf(plan, sizeof plan, "%s", text);
}

static int error_of(int code, const char **text, int is_name) {
  static char names[64][64];
  for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
    if (errors[i].code != code) continue;
    snprintf(names[i], sizeof names[i], code ? "CUDA_ERROR_%s" : "CUDA_%s", errors[i].name);
    *text = is_name ? names[i] : errors[i].text;
    return 0;
  }
  *text = NULL;
  return INVALID_VALUE;
}
EXPORT int cuGetErrorName(int code, const char **text) { return error_of(code, text, 1); }
EXPORT int cuGetErrorString(int code, const char **text) { return error_of(code, text, 0); }

/* ---- Devices and contexts ---- */

/* The primary ones, in the devices' order, then those that were made. Places are used again, numbers are not. */
typedef struct context { int device, retained, id; } context;
static context contexts[MOST_DEVICES + 8];
static int last_id;
static __thread context *stack[32];
static __thread int depth; /* stack[depth - 1] is current */

static context *current(void) { return depth ? stack[depth - 1] : NULL; }
static int is_context(const context *c) { return c >= contexts && c < contexts + MOST_DEVICES + 8 && c->retained; }

EXPORT int cuInit(unsigned flags) {
  CALL("cuInit", " %u", flags);
  if (initialised_by && initialised_by != getpid()) return leave(NOT_INITIALIZED);
  if (n_devices < 1) return leave(NO_DEVICE);
  for (int i = 0; i < n_devices; i++) contexts[i].device = i;
  initialised_by = getpid();
  return leave(0);
}
/* NVRTC itself asks for it where there is a libcuda. */
EXPORT int cuGetExportTable(const void **table, const void *id) {
  CALL("cuGetExportTable", "%s", id ? "" : " none");
  *table = NULL;
  return leave(NOT_FOUND);
}
EXPORT int cuDriverGetVersion(int *n) {
  CALL("cuDriverGetVersion", "%s", "");
  *n = version;
  return leave(0);
}
EXPORT int cuDeviceGetCount(int *n) {
  CALL("cuDeviceGetCount", "%s", "");
  *n = n_devices;
  return leave(0);
}
EXPORT int cuDeviceGet(int *device, int ordinal) {
  CALL("cuDeviceGet", " %d", ordinal);
  if (ordinal < 0 || ordinal >= n_devices) return leave(INVALID_DEVICE);
  *device = ordinal;
  return leave(0);
}
EXPORT int cuDeviceGetName(char *name, int size, int device) {
  CALL("cuDeviceGetName", " %d", device);
  if (device < 0 || device >= n_devices) return leave(INVALID_DEVICE);
  snprintf(name, (size_t)size, "Fake %d", device);
  return leave(0);
}
static int arch_of(int device) { return device == 0 ? 90 : 80; }
static int attribute_of(int attribute, int device) {
  switch (attribute) {
    case 1: case 2: case 3: return 1024;
    case 5: return 0x7fffffff;
    case 6: case 7: return 65535;
    case 10: return 32;
    case 16: return device == 0 ? 4 : 3; /* few, for they are one CPU */
    case 38: return 1 << 20;
    case 39: return 2048;
    case 41: return 1;
    case 75: return arch_of(device) / 10;
    case 76: return arch_of(device) % 10;
    case 81: return 228 << 10;
    case 83: case 89: return 1;
    case 97: return 227 << 10;
  }
  return 0;
}
EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device) {
  CALL("cuDeviceGetAttribute", " %d %d", attribute, device);
  if (device < 0 || device >= n_devices) return leave(INVALID_DEVICE);
  *value = attribute_of(attribute, device);
  return leave(0);
}
EXPORT int cuDevicePrimaryCtxRetain(context **c, int device) {
  CALL("cuDevicePrimaryCtxRetain", " %d", device);
  if (device < 0 || device >= n_devices) return leave(INVALID_DEVICE);
  *c = &contexts[device];
  if (!contexts[device].retained++) contexts[device].id = ++last_id;
  return leave(0);
}
EXPORT int cuCtxCreate_v2(context **made, unsigned flags, int device) {
  CALL("cuCtxCreate", " %u %d", flags, device);
  context *c = contexts + MOST_DEVICES;
  while (c < contexts + MOST_DEVICES + 8 && c->retained) c++;
  if (device < 0 || device >= n_devices) return leave(INVALID_DEVICE);
  if (c == contexts + MOST_DEVICES + 8 || depth == 32) return leave(OUT_OF_MEMORY);
  *c = (context){.device = device, .retained = 1, .id = ++last_id};
  *made = stack[depth++] = c;
  return leave(0);
}
EXPORT int cuCtxDestroy_v2(context *c) {
  CALL("cuCtxDestroy", "%s", "");
  if (!is_context(c) || c < contexts + MOST_DEVICES) return leave(INVALID_CONTEXT);
  c->retained = 0;
  if (depth && stack[depth - 1] == c) depth--;
  return leave(0);
}
EXPORT int cuDevicePrimaryCtxRelease_v2(int device) {
  CALL("cuDevicePrimaryCtxRelease", " %d", device);
  if (device < 0 || device >= n_devices) return leave(INVALID_DEVICE);
  if (!contexts[device].retained) return leave(INVALID_CONTEXT);
  contexts[device].retained--;
  return leave(0);
}
EXPORT int cuCtxGetCurrent(context **c) {
  CALL("cuCtxGetCurrent", "%s", "");
  *c = current();
  return leave(0);
}
EXPORT int cuCtxSetCurrent(context *c) {
  CALL("cuCtxSetCurrent", " %d", c ? c->device : -1);
  if (c && !is_context(c)) return leave(INVALID_CONTEXT);
  if (depth) depth--;
  if (c) stack[depth++] = c;
  return leave(0);
}
EXPORT int cuCtxGetDevice(int *device) {
  CALL("cuCtxGetDevice", "%s", "");
  if (!current()) return leave(INVALID_CONTEXT);
  *device = current()->device;
  return leave(0);
}
EXPORT int cuCtxPushCurrent_v2(context *c) {
  CALL("cuCtxPushCurrent", " %d", c ? c->device : -1);
  if (!is_context(c) || depth == 32) return leave(INVALID_CONTEXT);
  stack[depth++] = c;
  return leave(0);
}
EXPORT int cuCtxPopCurrent_v2(context **c) {
  CALL("cuCtxPopCurrent", "%s", "");
  if (!depth) return leave(INVALID_CONTEXT);
  depth--;
  if (c) *c = stack[depth];
  return leave(0);
}
EXPORT int cuCtxSynchronize(void) {
  CALL("cuCtxSynchronize", "%s", "");
  return leave(current() ? 0 : INVALID_CONTEXT);
}

/* ---- Streams and what they are given ---- */

enum { NONE, ACTIVE, INVALIDATED };
typedef struct function function;
typedef struct work {
  function *run; /* NULL: a copy */
  struct grid_dim blocks, threads;
  unsigned shared; /* bytes that the launch asks for */
  char *args[MOST_ARGS];
  void *to;
  const void *from;
  size_t bytes;
  int device;
  struct work *next;
} work;
typedef struct graph { work *first; } graph;
typedef struct stream {
  context *context;
  unsigned flags;
  int capture, mode, is_live;
  pthread_t by;
  graph *graph;
  struct stream *next;
} stream;
static stream *streams, special[2]; /* legacy, per thread */
static __thread int thread_mode;

static int find_stream(stream *s, stream **found) {
  if ((uintptr_t)s <= 2) {
    *found = &special[(uintptr_t)s == 2];
    (*found)->context = current();
    return current() ? 0 : INVALID_CONTEXT;
  }
  for (*found = streams; *found && *found != s; *found = (*found)->next) continue;
  return *found && s->is_live ? 0 : INVALID_HANDLE;
}
/* A call that no thread may make while a stream is captured globally. */
static int unsafe_call(void) {
  int code = 0;
  for (stream *s = streams; s; s = s->next) {
    if (!s->is_live || s->capture != ACTIVE || thread_mode == 2 || s->mode == 2) continue;
    if (s->mode == 1 && !pthread_equal(s->by, pthread_self())) continue;
    s->capture = INVALIDATED;
    code = CAPTURE_UNSUPPORTED;
  }
  return code;
}

/* ---- Memory ---- */

enum { DEVICE, PINNED, MANAGED };
typedef struct region { char *start; size_t bytes, room; int kind, device; } region;
static region regions[4096];
static int n_regions;

static region *region_of(const void *p) {
  for (int i = 0; i < n_regions; i++)
    if ((const char *)p >= regions[i].start && (const char *)p < regions[i].start + regions[i].bytes) return &regions[i];
  return NULL;
}
/* Whether that memory is one region's, or none's. */
static int is_within(const void *p, size_t bytes) {
  const region *r = region_of(p);
  return !r || bytes <= (size_t)(r->start + r->bytes - (const char *)p);
}
static int allocate(void **p, size_t bytes, int kind) {
  const size_t room = (bytes + PAGE - 1) / PAGE * PAGE;
  int code = unsafe_call();
  if (code) return code;
  if (!current()) return INVALID_CONTEXT;
  if (!bytes) return INVALID_VALUE;
  if (n_regions == 4096 || bytes > (size_t)1 << 36) return OUT_OF_MEMORY;
  /* a page more, of no allocation */
  char *start = mmap(NULL, room + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return OUT_OF_MEMORY;
  if (kind != DEVICE) mprotect(start, room, PROT_READ | PROT_WRITE);
  regions[n_regions++] = (region){start, bytes, room, kind, current()->device};
  *p = start;
  return 0;
}
static int release(void *p, int is_host) {
  region *r = region_of(p);
  int code = p ? unsafe_call() : 0;
  if (code || !p) return code;
  if (!r || r->start != p || (r->kind == PINNED) != is_host) return INVALID_VALUE;
  munmap(r->start, r->room + PAGE);
  *r = regions[--n_regions];
  return 0;
}
/* While a device works its memory can be touched. */
static void open_memory(int device, int is_open) {
  for (int i = 0; i < n_regions; i++)
    if (regions[i].kind == DEVICE && (device < 0 || regions[i].device == device))
      mprotect(regions[i].start, regions[i].room, is_open ? PROT_READ | PROT_WRITE : PROT_NONE);
}
EXPORT int cuMemAlloc_v2(uint64_t *p, size_t bytes) {
  void *start = NULL;
  CALL("cuMemAlloc", " %zu", bytes);
  const int code = allocate(&start, bytes, DEVICE);
  *p = (uintptr_t)start;
  return leave(code);
}
EXPORT int cuMemFree_v2(uint64_t p) {
  CALL("cuMemFree", "%s", "");
  return leave(release((void *)(uintptr_t)p, 0));
}
EXPORT int cuMemAllocManaged(uint64_t *p, size_t bytes, unsigned flags) {
  void *start = NULL;
  CALL("cuMemAllocManaged", " %zu %u", bytes, flags);
  const int code = allocate(&start, bytes, MANAGED);
  *p = (uintptr_t)start;
  return leave(code);
}
EXPORT int cuMemHostAlloc(void **p, size_t bytes, unsigned flags) {
  CALL("cuMemHostAlloc", " %zu %u", bytes, flags);
  return leave(allocate(p, bytes, PINNED));
}
EXPORT int cuMemFreeHost(void *p) {
  CALL("cuMemFreeHost", "%s", "");
  return leave(release(p, 1));
}
EXPORT int cuMemGetInfo_v2(size_t *n_free, size_t *total) {
  CALL("cuMemGetInfo", "%s", "");
  if (!current()) return leave(INVALID_CONTEXT);
  *n_free = *total = (size_t)1 << 36;
  for (int i = 0; i < n_regions; i++)
    if (regions[i].kind == DEVICE && regions[i].device == current()->device) *n_free -= regions[i].room;
  return leave(0);
}
static int pointer_attribute(void *value, int attribute, uint64_t address, const region *r) {
  switch (attribute) {
    case 1: *(context **)value = r ? &contexts[r->device] : NULL; return 0;
    case 2: *(unsigned *)value = r ? (r->kind == PINNED ? 1 : 2) : 0; return 0;
    case 3: *(uint64_t *)value = r ? address : 0; return 0;
    case 4: *(uint64_t *)value = r && r->kind != DEVICE ? address : 0; return 0;
    case 8: *(unsigned *)value = r && r->kind == MANAGED; return 0;
    case 9: *(int *)value = r ? r->device : -2; return 0;
    case 11: *(uint64_t *)value = r ? (uintptr_t)r->start : 0; return 0;
    case 12: *(size_t *)value = r ? r->bytes : 0; return 0;
  }
  return INVALID_VALUE;
}
EXPORT int cuPointerGetAttribute(void *value, int attribute, uint64_t address) {
  CALL("cuPointerGetAttribute", " %d", attribute);
  const region *r = region_of((void *)(uintptr_t)address);
  return leave(r ? pointer_attribute(value, attribute, address, r) : INVALID_VALUE);
}
EXPORT int cuPointerGetAttributes(unsigned n, const int *attributes, void **values, uint64_t address) {
  int code = 0;
  CALL("cuPointerGetAttributes", " %u", n);
  for (unsigned i = 0; i < n && !code; i++)
    code = pointer_attribute(values[i], attributes[i], address, region_of((void *)(uintptr_t)address));
  return leave(code);
}

/* ---- Modules, libraries ---- */

typedef struct module { void *handle; int arch, is_ptx; struct function *functions; } module;
struct function {
  module *module;
  char *name;
  void (*run)(void **args);
  struct grid_place *place;
  unsigned long sizes[MOST_ARGS];
  int n_args, most_shared; /* bytes that a launch may ask for, if it was set */
  struct function *next;
};

static int runs_here(int arch, int is_ptx) {
  const int here = arch_of(current()->device);
  return arch <= here && (is_ptx || arch / 10 == here / 10);
}
static int load(module **made, const void *image, int is_for_current) {
  static const unsigned char fatbin[] = {0x50, 0xed, 0x55, 0xba};
  const fake_cubin *head = memcmp(image, fatbin, 4) ? image : (const void *)((const char *)image + 16);
  int code = unsafe_call();
  if (code) return code;
  if (memcmp(head->magic, FAKE_CUBIN_MAGIC, sizeof head->magic)) return INVALID_IMAGE;
  const int arch = (int)head->arch;
  if (is_for_current && !current()) return INVALID_CONTEXT;
  if (is_for_current && !runs_here(arch, head->is_ptx == 1)) return NO_BINARY;
  char path[] = "/tmp/fake_cuda.XXXXXX";
  const int file = mkostemp(path, 02000000 /* O_CLOEXEC */);
  if (file < 0) return OUT_OF_MEMORY;
  const int is_written = write(file, head + 1, head->size) == (ssize_t)head->size;
  close(file);
  void *handle = is_written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  unlink(path);
  if (!handle) return INVALID_IMAGE;
  *made = calloc(1, sizeof **made);
  (*made)->handle = handle;
  (*made)->arch = arch;
  (*made)->is_ptx = head->is_ptx == 1;
  return 0;
}
static int unload(module *m) {
  const int code = unsafe_call();
  if (code) return code;
  while (m->functions) {
    function *f = m->functions;
    m->functions = f->next;
    free(f->name), free(f);
  }
  dlclose(m->handle);
  free(m);
  return 0;
}
static int find_function(function **found, module *m, const char *name) {
  char symbol[300];
  for (function *f = m->functions; f; f = f->next)
    if (!strcmp(f->name, name)) return *found = f, 0;
  snprintf(symbol, sizeof symbol, "fake_run_%s", name);
  void *run = dlsym(m->handle, symbol);
  snprintf(symbol, sizeof symbol, "fake_sizes_%s", name);
  void *sizes = dlsym(m->handle, symbol), *place = dlsym(m->handle, "qc_host");
  if (!run || !sizes || !place) return NOT_FOUND;
  function *f = calloc(1, sizeof *f);
  *f = (function){.module = m, .name = strdup(name), .run = (void (*)(void **))run, .place = place, .next = m->functions};
  f->n_args = ((int (*)(unsigned long *))sizes)(f->sizes);
  *found = m->functions = f;
  return 0;
}
EXPORT int cuModuleLoadData(module **m, const void *image) {
  CALL("cuModuleLoadData", "%s", "");
  return leave(load(m, image, 1));
}
EXPORT int cuModuleUnload(module *m) {
  CALL("cuModuleUnload", "%s", "");
  return leave(unload(m));
}
EXPORT int cuModuleGetFunction(function **f, module *m, const char *name) {
  CALL("cuModuleGetFunction", " %s", name);
  return leave(find_function(f, m, name));
}
#if !defined(FAKE_CUDA_OLD)
EXPORT int cuLibraryLoadData(module **m, const void *image, const int *a, void **b, unsigned n_jit, const int *c, void **d,
    unsigned n) {
  (void)a, (void)b, (void)c, (void)d;
  CALL("cuLibraryLoadData", " %u %u", n_jit, n);
  return leave(load(m, image, 0));
}
EXPORT int cuLibraryUnload(module *m) {
  CALL("cuLibraryUnload", "%s", "");
  return leave(unload(m));
}
EXPORT int cuLibraryGetKernel(function **f, module *m, const char *name) {
  CALL("cuLibraryGetKernel", " %s", name);
  return leave(find_function(f, m, name));
}
EXPORT int cuKernelGetFunction(function **f, function *kernel) {
  CALL("cuKernelGetFunction", " %s", kernel->name);
  if (!current()) return leave(INVALID_CONTEXT);
  if (!runs_here(kernel->module->arch, kernel->module->is_ptx)) return leave(NO_BINARY);
  *f = kernel;
  return leave(0);
}
EXPORT int cuCtxGetId(context *c, unsigned long long *id) {
  CALL("cuCtxGetId", "%s", "");
  if (!c) c = current();
  if (!c) return leave(INVALID_CONTEXT);
  *id = (unsigned long long)c->id;
  return leave(0);
}
#endif
EXPORT int cuFuncGetAttribute(int *value, int attribute, function *f) {
  CALL("cuFuncGetAttribute", " %d %s", attribute, f->name);
  *value = attribute == 0 ? 1024 : attribute == 4 ? 32 : 0;
  return leave(0);
}
static int set_attribute(function *f, int attribute, int value) {
  if (attribute != 8 || value < 0 || value > 227 << 10) return INVALID_VALUE;
  f->most_shared = value;
  return 0;
}
EXPORT int cuFuncSetAttribute(function *f, int attribute, int value) {
  CALL("cuFuncSetAttribute", " %s %d %d", f->name, attribute, value);
  return leave(set_attribute(f, attribute, value));
}
#if !defined(FAKE_CUDA_OLD)
EXPORT int cuKernelSetAttribute(int attribute, int value, function *kernel, int device) {
  CALL("cuKernelSetAttribute", " %d %d %s %d", attribute, value, kernel->name, device);
  return leave(set_attribute(kernel, attribute, value));
}
#endif
EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, function *f, int block, size_t shared_bytes) {
  CALL("cuOccupancyMaxActiveBlocksPerMultiprocessor", " %s %d %zu", f->name, block, shared_bytes);
  if (block < 1 || block > 1024) return leave(INVALID_VALUE);
  *blocks = 2048 / block;
  return leave(0);
}

/* ---- Work ---- */

static void run_thread(void *arg) {
  const work *w = arg;
  w->run->run((void **)(uintptr_t)w->args);
}
enum { GUARD = 64 };
static int execute(work *w) {
  int code = 0;
  char *shared = w->shared ? malloc(w->shared + 2 * GUARD) : NULL;
  if (shared) {
    memset(shared, 0x5a, w->shared + 2 * GUARD);
    w->run->place->shared = shared + GUARD, w->run->place->n_shared = w->shared;
  }
  open_memory(w->run ? w->device : -1, 1);
  if (!w->run) memmove(w->to, w->from, w->bytes);
  else if (grid_run(w->run->place, w->blocks, w->threads, GRID_FORWARD, run_thread, w) == GRID_REFUSED) code = INVALID_VALUE;
  open_memory(-1, 0);
  if (shared) {
    for (unsigned i = 0; i < GUARD && !code; i++)
      if (shared[i] != 0x5a || shared[GUARD + w->shared + i] != 0x5a) code = 700; /* beside the shared memory it asked for */
    w->run->place->shared = NULL, w->run->place->n_shared = 0;
    free(shared);
  }
  return code;
}
static void free_work(work *w) {
  for (int i = 0; i < MOST_ARGS; i++) free(w->args[i]);
  free(w);
}
/* Takes w. */
static int submit(work *w, stream *handle) {
  stream *s = NULL;
  int code = find_stream(handle, &s);
  if (!code && (uintptr_t)handle <= 1) {
    for (stream *other = streams; other; other = other->next) {
      if (!other->is_live || other->capture != ACTIVE || other->flags & 1 || other->context != current()) continue;
      other->capture = INVALIDATED;
      code = CAPTURE_IMPLICIT;
    }
  }
  if (!code && s->capture == INVALIDATED) code = CAPTURE_INVALIDATED;
  if (!code && w->run && s->context != current()) code = INVALID_HANDLE;
  if (code || s->capture == NONE) {
    if (!code) w->device = s->context->device, code = execute(w);
    free_work(w);
    return code;
  }
  work **at = &s->graph->first;
  while (*at) at = &(*at)->next;
  w->device = s->context->device;
  *at = w;
  return 0;
}
static int copy(void *to, const void *from, size_t bytes, stream *s) {
  if (!is_within(to, bytes) || !is_within(from, bytes)) return INVALID_VALUE;
  work *w = calloc(1, sizeof *w);
  w->to = to, w->from = from, w->bytes = bytes;
  return submit(w, s);
}
static void *at(uint64_t address) { return (void *)(uintptr_t)address; }
EXPORT int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, stream *s) {
  CALL("cuMemcpyHtoDAsync", " %zu", bytes);
  return leave(region_of(at(to)) ? copy(at(to), from, bytes, s) : INVALID_VALUE);
}
EXPORT int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, stream *s) {
  CALL("cuMemcpyDtoHAsync", " %zu", bytes);
  return leave(region_of(at(from)) ? copy(to, at(from), bytes, s) : INVALID_VALUE);
}
EXPORT int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, stream *s) {
  CALL("cuMemcpyAsync", " %zu", bytes);
  return leave(copy(at(to), at(from), bytes, s));
}
EXPORT int cuLaunchKernel(function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
    unsigned shared, stream *s,
                          void **params, void **extra) {
  CALL("cuLaunchKernel", " %s %u %u %u, %u %u %u, %u, %p", f->name, gx, gy, gz, bx, by, bz, shared, (void *)s);
  if (!gx || !gy || !gz || !bx || !by || !bz || (unsigned long)bx * by * bz > 1024 || gy > 65535 || gz > 65535 || extra)
    return leave(INVALID_VALUE);
  if (shared > 48 << 10 && (int)shared > f->most_shared) return leave(INVALID_VALUE);
  work *w = calloc(1, sizeof *w);
  w->run = f;
  w->shared = shared;
  w->blocks = (struct grid_dim){gx, gy, gz};
  w->threads = (struct grid_dim){bx, by, bz};
  /* the caller may have them back at once */
  for (int i = 0; i < f->n_args; i++) memcpy(w->args[i] = malloc(f->sizes[i]), params[i], f->sizes[i]);
  return leave(submit(w, s));
}

/* ---- Streams, capture, graphs, events ---- */

EXPORT int cuStreamCreate(stream **made, unsigned flags) {
  CALL("cuStreamCreate", " %u", flags);
  if (!current()) return leave(INVALID_CONTEXT);
  stream *s = calloc(1, sizeof *s);
  *s = (stream){.context = current(), .flags = flags, .is_live = 1, .next = streams};
  *made = streams = s; /* never freed: a handle that was destroyed is known as such */
  return leave(0);
}
EXPORT int cuStreamDestroy_v2(stream *handle) {
  stream *s;
  CALL("cuStreamDestroy", "%s", "");
  int code = find_stream(handle, &s);
  if (!code) s->is_live = 0;
  return leave(code);
}
EXPORT int cuStreamSynchronize(stream *handle) {
  stream *s;
  CALL("cuStreamSynchronize", " %p", (void *)handle);
  int code = find_stream(handle, &s);
  if (!code && s->capture != NONE) s->capture = INVALIDATED, code = CAPTURE_UNSUPPORTED;
  return leave(code);
}
EXPORT int cuStreamGetCtx(stream *handle, context **c) {
  stream *s;
  CALL("cuStreamGetCtx", " %p", (void *)handle);
  int code = find_stream(handle, &s);
  if (!code) *c = s->context;
  return leave(code);
}
EXPORT int cuStreamIsCapturing(stream *handle, int *status) {
  stream *s;
  CALL("cuStreamIsCapturing", " %p", (void *)handle);
  int code = find_stream(handle, &s);
  if (!code) *status = s->capture;
  return leave(code);
}
EXPORT int cuStreamBeginCapture_v2(stream *handle, int mode) {
  stream *s;
  CALL("cuStreamBeginCapture", " %d", mode);
  int code = find_stream(handle, &s);
  if (!code && ((uintptr_t)handle <= 1 || s->capture != NONE)) code = CAPTURE_UNSUPPORTED;
  if (!code) s->capture = ACTIVE, s->mode = mode, s->by = pthread_self(), s->graph = calloc(1, sizeof *s->graph);
  return leave(code);
}
EXPORT int cuGraphDestroy(graph *g) {
  CALL("cuGraphDestroy", "%s", "");
  for (work *w; (w = g->first);) g->first = w->next, free_work(w);
  free(g);
  return leave(0);
}
EXPORT int cuStreamEndCapture(stream *handle, graph **made) {
  stream *s;
  CALL("cuStreamEndCapture", "%s", "");
  int code = find_stream(handle, &s);
  *made = NULL;
  if (!code && s->capture == NONE) code = INVALID_VALUE;
  if (!code && s->mode != 2 && !pthread_equal(s->by, pthread_self())) code = CAPTURE_WRONG_THREAD;
  if (code) return leave(code);
  if (s->capture == INVALIDATED) code = CAPTURE_INVALIDATED, cuGraphDestroy(s->graph);
  else *made = s->graph;
  s->capture = NONE, s->graph = NULL;
  return leave(code);
}
EXPORT int cuGraphGetNodes(graph *g, void **nodes, size_t *n) {
  CALL("cuGraphGetNodes", "%s", "");
  size_t k = 0;
  for (work *w = g->first; w; w = w->next, k++)
    if (nodes && k < *n) nodes[k] = w;
  *n = k;
  return leave(0);
}
/* An executable graph is the graph: it is to be kept as long. */
EXPORT int cuGraphInstantiateWithFlags(graph **made, graph *g, unsigned long long flags) {
  CALL("cuGraphInstantiate", " %llu", flags);
  *made = g;
  return leave(0);
}
EXPORT int cuGraphExecDestroy(graph *g) {
  (void)g;
  CALL("cuGraphExecDestroy", "%s", "");
  return leave(0);
}
EXPORT int cuGraphLaunch(graph *g, stream *handle) {
  stream *s;
  CALL("cuGraphLaunch", "%s", "");
  int code = find_stream(handle, &s);
  for (work *w = g->first; w && !code; w = w->next) code = execute(w);
  return leave(code);
}
EXPORT int cuThreadExchangeStreamCaptureMode(int *mode) {
  CALL("cuThreadExchangeStreamCaptureMode", " %d", *mode);
  const int before = thread_mode;
  thread_mode = *mode;
  *mode = before;
  return leave(0);
}
typedef struct event { int n_recorded; double ms; } event;
EXPORT int cuEventCreate(event **made, unsigned flags) {
  CALL("cuEventCreate", " %u", flags);
  if (!current()) return leave(INVALID_CONTEXT);
  *made = calloc(1, sizeof **made);
  return leave(0);
}
EXPORT int cuEventDestroy_v2(event *e) {
  CALL("cuEventDestroy", "%s", "");
  free(e);
  return leave(0);
}
EXPORT int cuEventRecord(event *e, stream *handle) {
  stream *s;
  struct timespec now;
  CALL("cuEventRecord", "%s", "");
  int code = find_stream(handle, &s);
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (!code) e->n_recorded++, e->ms = 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
  return leave(code);
}
EXPORT int cuEventSynchronize(event *e) {
  CALL("cuEventSynchronize", " %d", e->n_recorded);
  return leave(0);
}
EXPORT int cuEventElapsedTime(float *ms, event *from, event *to) {
  CALL("cuEventElapsedTime", "%s", "");
  if (!from->n_recorded || !to->n_recorded) return leave(INVALID_HANDLE);
  *ms = (float)(to->ms - from->ms);
  return leave(0);
}
EXPORT int cuStreamWaitEvent(stream *handle, event *e, unsigned flags) {
  stream *s;
  CALL("cuStreamWaitEvent", " %d %u", e->n_recorded, flags);
  return leave(find_stream(handle, &s));
}

/* ---- Where they are ---- */

#if !defined(FAKE_CUDA_OLD)
#define AS(name, since) {#name, since, (void *)(uintptr_t)name}
#define AS2(name, since) {#name, since, (void *)(uintptr_t)name##_v2}
EXPORT int cuGetProcAddress_v2(const char *name, void **found, int wanted, uint64_t flags, int *status) {
  static const struct { const char *name; int since; void *function; } all[] = {
    AS(cuInit, 2000), AS(cuDriverGetVersion, 2020), AS(cuGetErrorName, 6000), AS(cuGetErrorString, 6000), AS(cuDeviceGetCount,
    2000),
    AS(cuDeviceGet, 2000), AS(cuDeviceGetName, 2000), AS(cuDeviceGetAttribute, 2000), AS(cuDevicePrimaryCtxRetain, 7000),
    AS2(cuDevicePrimaryCtxRelease, 11000), AS(cuCtxGetCurrent, 4000), AS(cuCtxSetCurrent, 4000), AS(cuCtxGetDevice, 2000),
    AS2(cuCtxPushCurrent, 4000), AS2(cuCtxPopCurrent, 4000), AS(cuCtxSynchronize, 2000), AS(cuCtxGetId, 12000),
    AS(cuStreamGetCtx, 9020),
    AS(cuStreamIsCapturing, 10000), AS(cuStreamSynchronize, 2000), AS(cuThreadExchangeStreamCaptureMode, 10010),
    AS(cuPointerGetAttributes, 7000), AS(cuPointerGetAttribute, 4000), AS2(cuMemAlloc, 3020), AS2(cuMemFree, 3020),
    AS2(cuMemGetInfo, 3020), AS2(cuMemcpyHtoDAsync, 3020), AS2(cuMemcpyDtoHAsync, 3020), AS(cuMemcpyAsync, 4000),
    AS(cuModuleLoadData, 2000), AS(cuModuleUnload, 2000), AS(cuModuleGetFunction, 2000), AS(cuLibraryLoadData, 12000),
    AS(cuLibraryUnload, 12000), AS(cuLibraryGetKernel, 12000), AS(cuKernelGetFunction, 12000), AS(cuFuncGetAttribute, 2020),
    AS(cuFuncSetAttribute, 9000), AS(cuKernelSetAttribute, 12000),
    AS(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050), AS(cuLaunchKernel, 4000),
  };
  char list[512];
  const char *missing = getenv("FAKE_CUDA_MISSING");
  snprintf(list, sizeof list, ",%s,", missing ? missing : "");
  char comma[80];
  snprintf(comma, sizeof comma, ",%s,", name);
  *found = NULL;
  if (status) *status = 1;
  if (flags & 2) return INVALID_VALUE; /* entry points of per-thread streams are not here */
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    if (strcmp(all[i].name, name) || strstr(list, comma)) continue;
    if (wanted < all[i].since) {
      if (status) *status = 2;
      return 0;
    }
    *found = all[i].function;
    if (status) *status = 0;
    return 0;
  }
  return status ? 0 : NOT_FOUND;
}
#endif
