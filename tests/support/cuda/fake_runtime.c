/* SPDX-License-Identifier: Apache-2.0
 *
 * fake_runtime.c: see cuda_runtime_api.h. A kernel is a function that takes its struct of arguments by value; one of 4 KB is
 * passed, which begins like any smaller one where structs are passed in memory. */
#include "cuda_runtime_api.h"

#include <stdint.h>
#include <string.h>

#include "grid.h"

enum { N_DEVICES = 2, WORDS = 512 };
typedef struct words { uint64_t at[WORDS]; } words;
typedef void kernel(words arguments);
typedef struct launched {
  kernel *function;
  const words *arguments;
} launched;

extern struct grid_place qc_host; /* cuda_host.h's */
struct fake_runtime fake_runtime;

static cudaError_t result(cudaError_t error) {
  if (error) fake_runtime.last_error = error;
  return error;
}

cudaError_t cudaGetLastError(void) {
  const cudaError_t error = fake_runtime.last_error;
  fake_runtime.last_error = cudaSuccess;
  return error;
}

const char *cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
    case cudaErrorLaunchFailure: return "cudaErrorLaunchFailure";
    default: return "cudaError...";
  }
}
const char *cudaGetErrorString(cudaError_t error) { return error ? "what went wrong" : "no error"; }

cudaError_t cudaGetDevice(int *device) {
  *device = fake_runtime.device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= N_DEVICES) return result(cudaErrorInvalidDevice);
  fake_runtime.device = device;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
  if (device < 0 || device >= N_DEVICES) return result(cudaErrorInvalidDevice);
  *value = attribute == cudaDevAttrMultiProcessorCount ? 3 : attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin ? 100 << 10 : 0;
  return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags) {
  (void)flags;
  *device = host;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) {
  const enum cudaStreamCaptureMode was = fake_runtime.mode;
  fake_runtime.mode = *mode;
  *mode = was;
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status) {
  (void)stream;
  *status = fake_runtime.is_capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int block, size_t shared_bytes) {
  (void)function, (void)shared_bytes;
  if (block != 256 || fake_runtime.mode != cudaStreamCaptureModeRelaxed) return result(cudaErrorLaunchFailure);
  fake_runtime.n_asked++;
  *blocks = 1;
  return cudaSuccess;
}

enum { OWN_SHARED = 20 << 10, GUARD = 64 }; /* shared memory of every kernel: its own, and beside what a launch asks for */
static int most_shared = (48 << 10) - OWN_SHARED;

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function) {
  (void)function;
  attributes->sharedSizeBytes = OWN_SHARED;
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute, int value) {
  (void)function;
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value > (100 << 10) - OWN_SHARED) return result(cudaErrorLaunchFailure);
  most_shared = value;
  return cudaSuccess;
}

static void run_thread(void *arg) {
  const launched *launched = arg;
  launched->function(*launched->arguments);
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared_bytes,
                             cudaStream_t stream) {
  words copy;
  launched launched = {NULL, &copy};
  const struct grid_dim blocks = {grid.x, grid.y, grid.z}, threads = {block.x, block.y, block.z};
  static char shared[(100 << 10) + 2 * GUARD];
  if ((int)shared_bytes > most_shared) return result(cudaErrorLaunchFailure);
  memset(shared, 0x5a, sizeof shared);
  qc_host.shared = shared + GUARD;
  qc_host.n_shared = shared_bytes;
  fake_runtime.n_launches++;
  fake_runtime.launched_on = fake_runtime.device;
  fake_runtime.stream = stream;
  if (fake_runtime.launch_error) return result(fake_runtime.launch_error);
  memcpy(&launched.function, &function, sizeof function);
  memcpy(&copy, arguments[0], sizeof copy);
  const enum grid_end end = grid_run(&qc_host, blocks, threads, GRID_SHUFFLED, run_thread, &launched);
  for (int i = 0; i < GUARD; i++)
    if (shared[i] != 0x5a || shared[GUARD + shared_bytes + i] != 0x5a) return result(cudaErrorLaunchFailure);
  return result(end == GRID_DONE ? cudaSuccess : cudaErrorLaunchFailure);
}
