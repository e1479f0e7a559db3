/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_driver.h: CUDA's driver and its compiler NVRTC, opened at first need; no other file opens them. Owns their declarations
 * (no header of CUDA is used; t735 compares them with one), their state as text, and the mapping of their errors to statuses.
 * Knows no kernels and no tensors; makes no context and leaves the caller's current one alone. Never closes them. */
#ifndef QN_CUDA_DRIVER_H
#define QN_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

/* ---- The driver's types, by size, and the values used here ---- */

typedef int32_t qn_cuda_result, qn_cuda_device;
typedef uint64_t qn_cuda_address;
typedef struct qn_cuda_context_object *qn_cuda_context;
typedef struct qn_cuda_stream_object *qn_cuda_stream; /* NULL and 1: the legacy stream; 2: the thread's own */
typedef struct qn_cuda_module_object *qn_cuda_module;
typedef struct qn_cuda_library_object *qn_cuda_library;
typedef struct qn_cuda_kernel_object *qn_cuda_kernel;
typedef struct qn_cuda_function_object *qn_cuda_function;

enum {
  QN_CUDA_INVALID_VALUE = 1, QN_CUDA_OUT_OF_MEMORY = 2, QN_CUDA_NOT_INITIALIZED = 3, QN_CUDA_NO_DEVICE = 100,
  QN_CUDA_INVALID_IMAGE = 200, QN_CUDA_NO_BINARY_FOR_GPU = 209, QN_CUDA_INVALID_PTX = 218, QN_CUDA_UNSUPPORTED_PTX_VERSION = 222,
  QN_CUDA_NOT_FOUND = 500, QN_CUDA_STREAM_CAPTURE_UNSUPPORTED = 900, QN_CUDA_STREAM_CAPTURE_WRONG_THREAD = 908,
};
enum { /* of a device */
  QN_CUDA_DEVICE_THREADS_PER_BLOCK = 1, QN_CUDA_DEVICE_MAX_GRID_X = 5, QN_CUDA_DEVICE_MULTIPROCESSORS = 16,
  QN_CUDA_DEVICE_L2_BYTES = 38, QN_CUDA_DEVICE_THREADS_PER_MULTIPROCESSOR = 39, QN_CUDA_DEVICE_MAJOR = 75,
  QN_CUDA_DEVICE_MINOR = 76, QN_CUDA_DEVICE_SHARED_PER_MULTIPROCESSOR = 81, QN_CUDA_DEVICE_SHARED_PER_BLOCK = 97,
};
enum { /* of a pointer */
  QN_CUDA_POINTER_CONTEXT = 1, QN_CUDA_POINTER_MEMORY_TYPE = 2, QN_CUDA_POINTER_DEVICE_POINTER = 3,
  QN_CUDA_POINTER_IS_MANAGED = 8, QN_CUDA_POINTER_DEVICE_ORDINAL = 9,
  QN_CUDA_POINTER_RANGE_START = 11, QN_CUDA_POINTER_RANGE_SIZE = 12,
};
enum { QN_CUDA_MEMORY_HOST = 1, QN_CUDA_MEMORY_DEVICE = 2 };
enum { /* of a function */
  QN_CUDA_FUNCTION_THREADS_PER_BLOCK = 0, QN_CUDA_FUNCTION_SHARED_BYTES = 1, QN_CUDA_FUNCTION_LOCAL_BYTES = 3,
  QN_CUDA_FUNCTION_REGISTERS = 4, QN_CUDA_FUNCTION_DYNAMIC_SHARED_BYTES = 8,
};
enum { QN_CUDA_CAPTURE_NONE = 0, QN_CUDA_CAPTURE_ACTIVE = 1, QN_CUDA_CAPTURE_INVALIDATED = 2 };
enum { QN_CUDA_CAPTURE_RELAXED = 2 }; /* a thread's capture mode */

/* X(member, name, version, is_needed, arguments): version is the CUDA version (1000 major + 10 minor) that introduced this
 * signature. Functions that are not needed are NULL if the driver is older. The null stream is the legacy one. */
#define QN_CUDA_FUNCTIONS(X)                                                                                              \
  X(init, "cuInit", 2000, 1, (unsigned flags))                                                                            \
  X(driver_version, "cuDriverGetVersion", 2020, 1, (int *version))                                                        \
  X(error_name, "cuGetErrorName", 6000, 1, (qn_cuda_result result, const char **text))                                    \
  X(error_string, "cuGetErrorString", 6000, 1, (qn_cuda_result result, const char **text))                                \
  X(device_count, "cuDeviceGetCount", 2000, 1, (int *count))                                                              \
  X(device_get, "cuDeviceGet", 2000, 1, (qn_cuda_device *device, int ordinal))                                            \
  X(device_name, "cuDeviceGetName", 2000, 1, (char *name, int size, qn_cuda_device device))                               \
  X(device_attribute, "cuDeviceGetAttribute", 2000, 1, (int *value, int attribute, qn_cuda_device device))                \
  X(primary_retain, "cuDevicePrimaryCtxRetain", 7000, 1, (qn_cuda_context *context, qn_cuda_device device))               \
  X(primary_release, "cuDevicePrimaryCtxRelease", 11000, 1, (qn_cuda_device device))                                      \
  X(context_get, "cuCtxGetCurrent", 4000, 1, (qn_cuda_context *context))                                                  \
  X(context_device, "cuCtxGetDevice", 2000, 1, (qn_cuda_device *device))                                                  \
  X(context_push, "cuCtxPushCurrent", 4000, 1, (qn_cuda_context context))                                                 \
  X(context_pop, "cuCtxPopCurrent", 4000, 1, (qn_cuda_context *context))                                                  \
  X(context_id, "cuCtxGetId", 12000, 0, (qn_cuda_context context, unsigned long long *id))                                \
  X(stream_context, "cuStreamGetCtx", 9020, 1, (qn_cuda_stream stream, qn_cuda_context *context))                         \
  X(stream_is_capturing, "cuStreamIsCapturing", 10000, 1, (qn_cuda_stream stream, int *status))                           \
  X(stream_synchronize, "cuStreamSynchronize", 2000, 1, (qn_cuda_stream stream))                                          \
  X(capture_mode, "cuThreadExchangeStreamCaptureMode", 10010, 1, (int *mode))                                             \
  X(pointer_attributes, "cuPointerGetAttributes", 7000, 1,                                                                \
    (unsigned count, const int *attributes, void **values, qn_cuda_address address))                                      \
  X(memory_allocate, "cuMemAlloc", 3020, 1, (qn_cuda_address *address, size_t bytes))                                     \
  X(memory_free, "cuMemFree", 3020, 1, (qn_cuda_address address))                                                         \
  X(memory_info, "cuMemGetInfo", 3020, 1, (size_t *n_free, size_t *total))                                                \
  X(copy_to_device, "cuMemcpyHtoDAsync", 3020, 1,                                                                         \
    (qn_cuda_address to, const void *from, size_t bytes, qn_cuda_stream stream))                                          \
  X(copy_to_host, "cuMemcpyDtoHAsync", 3020, 1, (void *to, qn_cuda_address from, size_t bytes, qn_cuda_stream stream))    \
  X(copy, "cuMemcpyAsync", 4000, 1, (qn_cuda_address to, qn_cuda_address from, size_t bytes, qn_cuda_stream stream))      \
  X(module_load, "cuModuleLoadData", 2000, 1, (qn_cuda_module *module, const void *image))                                \
  X(module_unload, "cuModuleUnload", 2000, 1, (qn_cuda_module module))                                                    \
  X(module_function, "cuModuleGetFunction", 2000, 1,                                                                      \
    (qn_cuda_function *function, qn_cuda_module module, const char *name))                                                \
  X(library_load, "cuLibraryLoadData", 12000, 0,                                                                          \
    (qn_cuda_library *library, const void *image, const int *jit_options, void **jit_values, unsigned n_jit,              \
     const int *options, void **values, unsigned n_options))                                                              \
  X(library_unload, "cuLibraryUnload", 12000, 0, (qn_cuda_library library))                                               \
  X(library_kernel, "cuLibraryGetKernel", 12000, 0, (qn_cuda_kernel *kernel, qn_cuda_library library, const char *name))  \
  X(kernel_function, "cuKernelGetFunction", 12000, 0, (qn_cuda_function *function, qn_cuda_kernel kernel))                \
  X(function_attribute, "cuFuncGetAttribute", 2020, 1, (int *value, int attribute, qn_cuda_function function))            \
  X(function_set_attribute, "cuFuncSetAttribute", 9000, 0, (qn_cuda_function function, int attribute, int value))         \
  X(kernel_set_attribute, "cuKernelSetAttribute", 12000, 0,                                                               \
    (int attribute, int value, qn_cuda_kernel kernel, qn_cuda_device device))                                             \
  X(occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor", 6050, 1,                                                    \
    (int *blocks, qn_cuda_function function, int block, size_t shared_bytes))                                             \
  X(launch, "cuLaunchKernel", 4000, 1,                                                                                    \
    (qn_cuda_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,    \
     unsigned block_z, unsigned shared_bytes, qn_cuda_stream stream, void **params, void **extra))

#define QN_CUDA_MEMBER(member, name, version, is_needed, arguments) qn_cuda_result(*member) arguments;
typedef struct qn_cuda_driver {
  QN_CUDA_FUNCTIONS(QN_CUDA_MEMBER)
  int version;   /* 1000 major + 10 minor */
  int n_devices; /* at least 1 */
} qn_cuda_driver;

/* ---- NVRTC, likewise: 0 is success ---- */

typedef struct qn_nvrtc_program_object *qn_nvrtc_program;
enum { QN_NVRTC_INVALID_OPTION = 5 };
#define QN_NVRTC_FUNCTIONS(X)                                                                                             \
  X(get_version, "nvrtcVersion", (int *major, int *minor))                                                                \
  X(create, "nvrtcCreateProgram",                                                                                         \
    (qn_nvrtc_program *program, const char *text, const char *name, int n_headers, const char *const *headers,            \
     const char *const *header_names))                                                                                    \
  X(destroy, "nvrtcDestroyProgram", (qn_nvrtc_program *program))                                                          \
  X(compile, "nvrtcCompileProgram", (qn_nvrtc_program program, int n_options, const char *const *options))                \
  X(log_size, "nvrtcGetProgramLogSize", (qn_nvrtc_program program, size_t *bytes))                                        \
  X(log, "nvrtcGetProgramLog", (qn_nvrtc_program program, char *text))                                                    \
  X(cubin_size, "nvrtcGetCUBINSize", (qn_nvrtc_program program, size_t *bytes))                                           \
  X(cubin, "nvrtcGetCUBIN", (qn_nvrtc_program program, char *bytes))                                                      \
  X(ptx_size, "nvrtcGetPTXSize", (qn_nvrtc_program program, size_t *bytes))                                               \
  X(ptx, "nvrtcGetPTX", (qn_nvrtc_program program, char *bytes))                                                          \
  X(n_archs, "nvrtcGetNumSupportedArchs", (int *count))                                                                   \
  X(archs, "nvrtcGetSupportedArchs", (int *numbers))

#define QN_NVRTC_MEMBER(member, name, arguments) int (*member) arguments;
typedef struct qn_nvrtc {
  QN_NVRTC_FUNCTIONS(QN_NVRTC_MEMBER)
  const char *(*error_string)(int result);
  /* Asked at points of a compile: 1 ends it. NULL: NVRTC is older than CUDA 13. */
  int (*set_flow_callback)(qn_nvrtc_program program, int (*is_over)(void *payload, void *unused), void *payload);
  int version; /* as the driver's */
} qn_nvrtc;

/* ---- Opening ----
 * Searched for by soname: in QUERN_CUDA_PATH and its lib64 (an absolute path, else it is ignored), by the loader, in
 * /usr/local/cuda/lib64. The first result is final, even if nothing was found. Thread-safe. */

/* The initialised driver. NULL: there is no usable one, with the reason in this thread's last error; *status is DEVICE or
 * MEMORY. A child of a process that had initialised CUDA has none. */
const qn_cuda_driver *qn_cuda_open(quern_status *status);

/* The compiler, of no later major version than the driver. NULL: *status is UNSUPPORTED, DEVICE (no driver) or MEMORY. */
const qn_nvrtc *qn_cuda_compiler(quern_status *status);

/* The compiler if it has been opened; else NULL, without an error. Opens nothing. */
const qn_nvrtc *qn_cuda_compiler_there(void);

/* "not loaded yet", "ready: driver 13.0, 1 device, NVRTC 13.0", or why it cannot be used. Opens nothing. */
void qn_cuda_state(char *text, size_t size);

/* The line of quern_ctx_describe: "cuda: " and the state. */
void qn_cuda_describe(qn_strbuf *buf);

/* The status of a driver's error (not 0), recorded as "what: CUDA_ERROR_NAME: its sentence": MEMORY, COMPILER (the device cannot
 * run the image), CAPTURING, DEVICE (a forked child) or DRIVER. */
quern_status qn_cuda_fail(const qn_cuda_driver *driver, qn_cuda_result result, const char *what);

#endif
