/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_driver.c: see cuda_driver.h.
 *
 * No lock is held while foreign code runs: a host may call from a constructor inside of dlopen, and a thread that holds our
 * lock would wait for the loader's. Concurrent first calls all open; the first result is kept for all. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* dlfcn.h */
#endif
#include "cuda/cuda_driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/jit_environment.h"
#include "base/files/module.h"
#include "base/threads/thread_shield.h"

#define DRIVER_FILE "libcuda.so.1"
#define OLDEST 11000 /* of drivers and, by its major version, of compilers */
static const char fallback[] = "/usr/local/cuda/lib64";

/* The result of an attempt to open; never changed or freed after it is published. */
typedef struct driver_end {
  quern_status status;
  qn_cuda_driver driver;
  char why[768];
} driver_end;

typedef struct compiler_end {
  quern_status status;
  qn_nvrtc compiler;
  char why[768];
} compiler_end;

static _Atomic(const driver_end *) the_driver;
static _Atomic(const compiler_end *) the_compiler;
static atomic_int n_opening;
static const driver_end *of_the_parent; /* keeps the replaced result reachable, for leak checkers */

/* ---- Forks ---- */

static const driver_end forked = {.status = QUERN_E_DEVICE, .why = "the process was forked after CUDA was initialised"};
static const driver_end half_forked = {.status = QUERN_E_DEVICE, .why = "the process was forked while CUDA was being opened"};

static void after_cuda_fork_in_child(void) {
  const driver_end *end = atomic_load(&the_driver);
  const int was_opening = atomic_exchange(&n_opening, 0);
  if (end && end->status == QUERN_OK) {
    of_the_parent = end;
    atomic_store(&the_driver, &forked);
  } else if (!end && was_opening) {
    atomic_store(&the_driver, &half_forked);
  }
}

__attribute__((constructor)) static void watch_cuda_forks(void) {
  pthread_atfork(NULL, NULL, after_cuda_fork_in_child);
}

/* ---- Finding ---- */

__attribute__((format(printf, 3, 4))) static void say(char *why, size_t size, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(why, size, format, args);
  va_end(args);
}

/* Opens folder/inner/name. 0: there is no such file; 1: there is, and *library is NULL if it cannot be opened. */
static int open_in(const char *folder, const char *inner, const char *name, void **library, char *why, size_t size) {
  char path[1024];
  if (!qn_module_is_there(folder, inner, name, path, sizeof path)) return 0;
  *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const char *failure = *library ? NULL : dlerror();
  if (!*library) say(why, size, "%s", failure ? failure : path);
  return 1;
}

/* Opens a library. NULL: `why` has the reason. A file that exists but cannot be opened ends the search and is reported. */
static void *find(const char *name, char *why, size_t size) {
  const char *given = qn_environment_cuda_path();
  const int is_relative = given && given[0] != '/';
  void *library = NULL;
  if (is_relative) given = NULL;
  if (given && open_in(given, "", name, &library, why, size)) return library;
  if (given && open_in(given, "/lib64", name, &library, why, size)) return library;
  library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library) return library;
  const char *failure = dlerror();
  char own[512];
  say(own, sizeof own, "%s", failure ? failure : name);
  if (open_in(fallback, "", name, &library, why, size)) return library;
  /* "NAME: cannot open shared object file": the file itself is missing; another name: a library that it needs. */
  const size_t length = strlen(name);
  const int is_missing = strncmp(own, name, length) == 0 && strstr(own, "No such file");
  if (!is_missing) {
    say(why, size, "%s", own);
  } else if (is_relative) {
    say(why, size, "%s is not there; QUERN_CUDA_PATH is ignored, for it is not an absolute path", name);
  } else if (given) {
    say(why, size, "%s is not there: not in %s, its lib64, where the loader looks, or %s", name, given, fallback);
  } else {
    say(why, size, "%s is not there: not where the loader looks, nor in %s", name, fallback);
  }
  return NULL;
}

/* ---- The driver ---- */

enum { LEGACY_STREAM = 1 };
typedef qn_cuda_result get_address_v2(const char *name, void **function, int version, uint64_t flags, int *found);
typedef qn_cuda_result get_address(const char *name, void **function, int version, uint64_t flags);

/* The address of the driver's function with this signature. Without cuGetProcAddress (before 11.3): by name, with _v2 for
 * functions with another signature in older versions. */
static void *address_of(void *library, const char *name, int version) {
  static const char *const second[] = {"cuDevicePrimaryCtxRelease", "cuCtxPushCurrent", "cuCtxPopCurrent", "cuMemAlloc",
                                       "cuMemFree", "cuMemGetInfo", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync"};
  void *function = NULL;
  int found = 0;
  void *get = dlsym(library, "cuGetProcAddress_v2");
  if (get) return ((get_address_v2 *)get)(name, &function, version, LEGACY_STREAM, &found) == 0 && found == 0 ? function : NULL;
  get = dlsym(library, "cuGetProcAddress");
  if (get) return ((get_address *)get)(name, &function, version, LEGACY_STREAM) == 0 ? function : NULL;
  char with_version[64];
  for (size_t i = 0; i < sizeof second / sizeof second[0]; i++) {
    if (strcmp(name, second[i])) continue;
    snprintf(with_version, sizeof with_version, "%s_v2", name);
    name = with_version;
    break;
  }
  return dlsym(library, name);
}

/* 1: all required functions were found. */
static int fill_driver(qn_cuda_driver *d, void *library, char *why, size_t size) {
  void *function;
#define FIND(member, name, since, is_needed, arguments)                \
  function = address_of(library, name, since);                         \
  if (function) memcpy(&d->member, &function, sizeof function);        \
  if (!function && is_needed) {                                        \
    say(why, size, "%s: the driver has no %s", DRIVER_FILE, name);     \
    return 0;                                                          \
  }
  QN_CUDA_FUNCTIONS(FIND)
#undef FIND
  return 1;
}

static void say_result(const qn_cuda_driver *d, qn_cuda_result result, char *text, size_t size) {
  const char *name = NULL, *sentence = NULL;
  if (d->error_name(result, &name) || !name) name = NULL;
  if (d->error_string(result, &sentence) || !sentence) sentence = "the driver does not know this error";
  if (name)
    say(text, size, "%s: %s", name, sentence);
  else
    say(text, size, "CUDA error %d: %s", (int)result, sentence);
}

/* Opens and initialises the driver. */
static void make_driver(driver_end *end) {
  qn_cuda_driver *d = &end->driver;
  char text[256];
  end->status = QUERN_E_DEVICE;
  void *library = find(DRIVER_FILE, end->why, sizeof end->why);
  if (!library || !fill_driver(d, library, end->why, sizeof end->why)) {
    if (library) dlclose(library);
    return;
  }
  qn_cuda_result result = d->init(0);
  if (result) {
    say_result(d, result, text, sizeof text);
    say(end->why, sizeof end->why, "%s%s", result == QN_CUDA_NO_DEVICE ? "no device: " : "", text);
  } else if ((result = d->driver_version(&d->version)) || (result = d->device_count(&d->n_devices))) {
    say_result(d, result, text, sizeof text);
    say(end->why, sizeof end->why, "%s", text);
  } else if (d->version < OLDEST) {
    say(end->why, sizeof end->why, "the driver is of CUDA %d.%d, 11.0 is wanted", d->version / 1000, d->version % 1000 / 10);
  } else if (d->n_devices < 1) {
    say(end->why, sizeof end->why, "no device: the driver counts %d", d->n_devices);
  } else {
    end->status = QUERN_OK;
  }
}

static const driver_end *driver(quern_status *status) {
  const driver_end *end = atomic_load(&the_driver), *first = NULL;
  *status = QUERN_OK;
  if (end) return end;
  const int kept_errno = errno, kept_cancel = qn_thread_shield();
  driver_end *own = calloc(1, sizeof *own);
  if (own) {
    atomic_fetch_add(&n_opening, 1);
    make_driver(own);
    if (atomic_compare_exchange_strong(&the_driver, &first, own)) {
      end = own;
    } else {
      end = first;
      free(own);
    }
    atomic_fetch_sub(&n_opening, 1);
  }
  qn_thread_unshield(kept_cancel);
  errno = kept_errno;
  if (!end) *status = qn_status_fail(QUERN_E_MEMORY, "cuda: out of memory");
  return end;
}

const qn_cuda_driver *qn_cuda_open(quern_status *status) {
  const driver_end *end = driver(status);
  if (!end) return NULL;
  if (end->status) *status = qn_status_fail(end->status, "CUDA cannot be used: %s", end->why);
  return end->status ? NULL : &end->driver;
}

/* ---- The compiler ---- */

static int fill_compiler(qn_nvrtc *c, void *library, const char *file, char *why, size_t size) {
  void *function;
#define FIND(member, name, arguments)                                  \
  function = dlsym(library, name);                                     \
  if (function) memcpy(&c->member, &function, sizeof function);        \
  if (!function) {                                                     \
    say(why, size, "%s has no %s", file, name);                        \
    return 0;                                                          \
  }
  QN_NVRTC_FUNCTIONS(FIND)
  FIND(error_string, "nvrtcGetErrorString", )
#undef FIND
  function = dlsym(library, "nvrtcSetFlowCallback");
  if (function) memcpy(&c->set_flow_callback, &function, sizeof function);
  else dlerror();
  return 1;
}

/* 1: it can be used with this driver. */
static int try_compiler(compiler_end *end, int named, const qn_cuda_driver *d) {
  char file[32];
  int major = 0, minor = 0;
  snprintf(file, sizeof file, "libnvrtc.so.%d", named);
  void *library = find(file, end->why, sizeof end->why);
  if (!library) return 0;
  if (fill_compiler(&end->compiler, library, file, end->why, sizeof end->why)) {
    const int result = end->compiler.get_version(&major, &minor);
    end->compiler.version = 1000 * major + 10 * minor;
    if (result)
      say(end->why, sizeof end->why, "%s: %s", file, end->compiler.error_string(result));
    else if (major != named)
      say(end->why, sizeof end->why, "%s says that its version is %d.%d", file, major, minor);
    else if (major > d->version / 1000)
      say(end->why, sizeof end->why, "NVRTC %d.%d is newer than the driver, of CUDA %d.%d", major, minor, d->version / 1000,
          d->version % 1000 / 10);
    else
      return 1;
  }
  dlclose(library);
  return 0;
}

static void make_compiler(compiler_end *end, const qn_cuda_driver *d) {
  static const int majors[] = {13, 12};
  end->status = QUERN_E_UNSUPPORTED;
  char whys[2][sizeof end->why / 2 - 2];
  for (int i = 0; i < 2; i++) {
    if (try_compiler(end, majors[i], d)) {
      end->status = QUERN_OK;
      return;
    }
    snprintf(whys[i], sizeof whys[i], "%.*s", (int)sizeof whys[i] - 1, end->why);
  }
  say(end->why, sizeof end->why, "%s; %s", whys[0], whys[1]);
}

const qn_nvrtc *qn_cuda_compiler(quern_status *status) {
  const compiler_end *end = atomic_load(&the_compiler), *first = NULL;
  const qn_cuda_driver *d = qn_cuda_open(status);
  if (!d) return NULL;
  if (!end) {
    const int kept_errno = errno, kept_cancel = qn_thread_shield();
    compiler_end *own = calloc(1, sizeof *own);
    if (own) {
      make_compiler(own, d);
      if (atomic_compare_exchange_strong(&the_compiler, &first, own)) {
        end = own;
      } else {
        end = first;
        free(own);
      }
    }
    qn_thread_unshield(kept_cancel);
    errno = kept_errno;
  }
  if (!end) *status = qn_status_fail(QUERN_E_MEMORY, "cuda: out of memory");
  else if (end->status) *status = qn_status_fail(end->status, "NVRTC cannot be used: %s", end->why);
  return end && !end->status ? &end->compiler : NULL;
}

const qn_nvrtc *qn_cuda_compiler_there(void) {
  const driver_end *end = atomic_load(&the_driver);
  const compiler_end *nvrtc = atomic_load(&the_compiler);
  return end && !end->status && nvrtc && !nvrtc->status ? &nvrtc->compiler : NULL;
}

/* ---- In words ---- */

void qn_cuda_state(char *text, size_t size) {
  const driver_end *end = atomic_load(&the_driver);
  const compiler_end *nvrtc = atomic_load(&the_compiler);
  if (!end || end->status) {
    say(text, size, "%s", end ? end->why : "not loaded yet");
    return;
  }
  const int version = end->driver.version, n = end->driver.n_devices;
  char compiler[sizeof nvrtc->why + 16] = "NVRTC not loaded yet";
  if (nvrtc && nvrtc->status)
    say(compiler, sizeof compiler, "no NVRTC: %s", nvrtc->why);
  else if (nvrtc)
    say(compiler, sizeof compiler, "NVRTC %d.%d", nvrtc->compiler.version / 1000, nvrtc->compiler.version % 1000 / 10);
  say(text, size, "ready: driver %d.%d, %d device%s, %s", version / 1000, version % 1000 / 10, n, n == 1 ? "" : "s", compiler);
}

void qn_cuda_describe(qn_strbuf *buf) {
  char text[1024];
  qn_cuda_state(text, sizeof text);
  qn_strbuf_add(buf, "cuda: %s\n", text);
}

quern_status qn_cuda_fail(const qn_cuda_driver *d, qn_cuda_result result, const char *what) {
  char text[256];
  const driver_end *end = atomic_load(&the_driver);
  if (end == &forked) return qn_status_fail(QUERN_E_DEVICE, "%s: %s", what, end->why);
  quern_status status = QUERN_E_DRIVER;
  if (result == QN_CUDA_OUT_OF_MEMORY) status = QUERN_E_MEMORY;
  if (result == QN_CUDA_INVALID_IMAGE || result == QN_CUDA_NO_BINARY_FOR_GPU || result == QN_CUDA_INVALID_PTX ||
      result == QN_CUDA_UNSUPPORTED_PTX_VERSION)
    status = QUERN_E_COMPILER;
  if (result >= QN_CUDA_STREAM_CAPTURE_UNSUPPORTED && result <= QN_CUDA_STREAM_CAPTURE_WRONG_THREAD) status = QUERN_E_CAPTURING;
  say_result(d, result, text, sizeof text);
  return qn_status_fail(status, "%s: %s", what, text);
}
