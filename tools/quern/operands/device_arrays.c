/* SPDX-License-Identifier: Apache-2.0
 *
 * device_arrays.c: see device_arrays.h. The driver's types are declared by their size. Its functions are called by the names
 * of the library, to which CUDA's header maps the documented ones. */
#include "device_arrays.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "binding.h"
#include "say.h"

#define DRIVER_FILE "libcuda.so.1"
#define DRIVER_FUNCTIONS(X)                                                                       \
  X(init, "cuInit", (unsigned flags))                                                             \
  X(error_name, "cuGetErrorName", (int result, const char **text))                                \
  X(error_string, "cuGetErrorString", (int result, const char **text))                            \
  X(device_count, "cuDeviceGetCount", (int *count))                                               \
  X(device_get, "cuDeviceGet", (int *device, int ordinal))                                        \
  X(context_retain, "cuDevicePrimaryCtxRetain", (void **context, int device))                     \
  X(context_release, "cuDevicePrimaryCtxRelease_v2", (int device))                                \
  X(context_set, "cuCtxSetCurrent", (void *context))                                              \
  X(stream_create, "cuStreamCreate", (void **stream, unsigned flags))                             \
  X(stream_destroy, "cuStreamDestroy_v2", (void *stream))                                         \
  X(stream_synchronize, "cuStreamSynchronize", (void *stream))                                    \
  X(event_create, "cuEventCreate", (void **event, unsigned flags))                                \
  X(event_destroy, "cuEventDestroy_v2", (void *event))                                            \
  X(event_record, "cuEventRecord", (void *event, void *stream))                                   \
  X(event_synchronize, "cuEventSynchronize", (void *event))                                       \
  X(event_elapsed, "cuEventElapsedTime", (float *ms, void *start, void *end))                     \
  X(memory_allocate, "cuMemAlloc_v2", (uint64_t *address, size_t bytes))                          \
  X(memory_free, "cuMemFree_v2", (uint64_t address))                                              \
  X(send, "cuMemcpyHtoDAsync_v2", (uint64_t to, const void *from, size_t bytes, void *stream))    \
  X(fetch, "cuMemcpyDtoHAsync_v2", (void *to, uint64_t from, size_t bytes, void *stream))

#define DRIVER_MEMBER(member, name, arguments) int(*member) arguments;
typedef struct cuda_driver {
  DRIVER_FUNCTIONS(DRIVER_MEMBER)
} cuda_driver;

struct device {
  cuda_driver driver;
  int32_t ordinal;
  int handle; /* the driver's number of it */
  void *context, *stream, *events[DEVICE_MARKS];
  uint64_t memory[BINDING_MAX];
  int n_memory;
};

enum { STREAM_NON_BLOCKING = 1, OUT_OF_MEMORY = 2, MAX_ORDINAL = 9999 };

int device_parse(const char *word, DLDevice *which) {
  *which = (DLDevice){kDLCPU, 0};
  if (strcmp(word, "cpu") == 0) return 1;
  if (strncmp(word, "cuda", 4) != 0) return 0;
  which->device_type = kDLCUDA;
  return !word[4] || (word[4] == ':' && operand_parse_count(word + 5, 0, MAX_ORDINAL, &which->device_id));
}

/* ---- The driver ---- */

/* folder/inner/libcuda.so.1, if there is such a file; 0: there is none, 1: *library, or why not. */
static int open_in(const char *folder, const char *inner, void **library, const char **why) {
  char path[1024];
  const int n = snprintf(path, sizeof path, "%s%s/%s", folder, inner, DRIVER_FILE);
  if (n < 0 || (size_t)n >= sizeof path || access(path, F_OK) != 0) return 0;
  if (!(*library = dlopen(path, RTLD_NOW | RTLD_LOCAL))) *why = dlerror();
  return 1;
}

static void *find_driver(const char **why) {
  const char *given = secure_getenv("QUERN_CUDA_PATH");
  void *library = NULL;
  if (given && given[0] == '/' && (open_in(given, "", &library, why) || open_in(given, "/lib64", &library, why)))
    return library;
  if ((library = dlopen(DRIVER_FILE, RTLD_NOW | RTLD_LOCAL))) return library;
  *why = dlerror();
  open_in("/usr/local/cuda", "/lib64", &library, why);
  return library;
}

/* 1 for a result of 0, else 0, and it is said. */
static int check(const device *device, int result, const char *what) {
  const char *name = NULL, *text = NULL;
  if (!result) return 1;
  device->driver.error_name(result, &name);
  device->driver.error_string(result, &text);
  if (!name) return complain("cuda:%d: %s: error %d", device->ordinal, what, result), 0;
  return complain("cuda:%d: %s: %s: %s", device->ordinal, what, name, text ? text : "?"), 0;
}

static int open_driver(device *device) {
  const char *why = NULL;
  void *library = find_driver(&why);
  int count = 0;
  if (!library) return complain("cuda:%d: no driver: %s", device->ordinal, why ? why : DRIVER_FILE " cannot be opened"), 0;
#define DRIVER_FIND(member, name, arguments)                 \
  *(void **)&device->driver.member = dlsym(library, name);   \
  if (!device->driver.member)                                \
    return complain("cuda:%d: the driver is too old: it has no %s", device->ordinal, name), 0;
  DRIVER_FUNCTIONS(DRIVER_FIND)
  if (!check(device, device->driver.init(0), "no device") || !check(device, device->driver.device_count(&count), "no device"))
    return 0;
  if (device->ordinal >= count)
    return complain("cuda:%d: no such device: there %s %d", device->ordinal, count == 1 ? "is" : "are", count), 0;
  return check(device, device->driver.device_get(&device->handle, device->ordinal), "no device");
}

device *device_open(int32_t ordinal) {
  device *device = calloc(1, sizeof *device);
  if (!device) return complain("out of memory"), NULL;
  device->ordinal = ordinal;
  const cuda_driver *driver = &device->driver;
  int good = open_driver(device) && check(device, driver->context_retain(&device->context, device->handle), "its context") &&
             check(device, driver->context_set(device->context), "its context") &&
             check(device, driver->stream_create(&device->stream, STREAM_NON_BLOCKING), "a stream");
  for (int k = 0; k < DEVICE_MARKS && good; k++) good = check(device, driver->event_create(&device->events[k], 0), "an event");
  if (good) return device;
  device_close(device);
  return NULL;
}

void device_close(device *device) {
  if (!device) return;
  const cuda_driver *driver = &device->driver;
  if (device->stream) driver->stream_synchronize(device->stream);
  for (int k = 0; k < device->n_memory; k++) driver->memory_free(device->memory[k]);
  for (int k = 0; k < DEVICE_MARKS; k++)
    if (device->events[k]) driver->event_destroy(device->events[k]);
  if (device->stream) driver->stream_destroy(device->stream);
  if (device->context) {
    driver->context_set(NULL);
    driver->context_release(device->handle);
  }
  free(device);
}

void *device_stream(const device *device) { return device->stream; }

/* ---- Memory ---- */

int device_take(device *device, ndarray *array) {
  uint64_t address = 0;
  const int result = device->driver.memory_allocate(&address, array->bytes ? (size_t)array->bytes : 1);
  if (result == OUT_OF_MEMORY)
    return complain("%s: cuda:%d is out of memory: it has %lld bytes", array->word->name, device->ordinal,
                    (long long)array->bytes),
           0;
  if (!check(device, result, "memory")) return 0;
  device->memory[device->n_memory++] = address;
  array->tensor.data = (void *)(uintptr_t)address;
  array->tensor.device = (DLDevice){kDLCUDA, device->ordinal};
  return 1;
}

int device_send(device *device, ndarray *array) {
  const uint64_t address = (uintptr_t)array->tensor.data;
  if (!array->bytes) return 1;
  return check(device, device->driver.send(address, array->memory, (size_t)array->bytes, device->stream), "copying to it");
}

int device_fetch(device *device, ndarray *array) {
  const uint64_t address = (uintptr_t)array->tensor.data;
  if (!array->bytes) return 1;
  return check(device, device->driver.fetch(array->memory, address, (size_t)array->bytes, device->stream), "copying from it");
}

/* ---- Time ---- */

int device_mark(device *device, int mark) {
  return check(device, device->driver.event_record(device->events[mark], device->stream), "an event");
}

int device_wait(device *device, int mark) {
  return check(device, device->driver.event_synchronize(device->events[mark]), "running");
}

int device_ms(device *device, int from, int to, double *ms) {
  float elapsed = 0;
  const int good = check(device, device->driver.event_elapsed(&elapsed, device->events[from], device->events[to]), "timing");
  *ms = elapsed;
  return good;
}
