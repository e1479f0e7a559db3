/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_runtime_api.h: CUDA's runtime for machines without it, as far as a generated tree's launcher uses it: kernels are those
 * that cuda_host.h has made functions of the CPU, device memory is the host's, a stream is any address. What is asked of it is
 * counted, and it fails when told to, in `fake_runtime`. Not for two threads at a time. Must not know Quern. */
#ifndef QUERN_TESTS_CUDA_RUNTIME_API_H
#define QUERN_TESTS_CUDA_RUNTIME_API_H

#include <stddef.h>

typedef enum cudaError {
  cudaSuccess = 0,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidDeviceFunction = 98,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorInvalidKernelImage = 200,
  cudaErrorNoKernelImageForDevice = 209,
  cudaErrorInvalidPtx = 218,
  cudaErrorLaunchFailure = 719,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
  cudaErrorStreamCaptureImplicit = 906
} cudaError_t;

enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed };
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive };
enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount = 16, cudaDevAttrMaxSharedMemoryPerBlockOptin = 97 };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
struct cudaFuncAttributes { size_t sharedSizeBytes; };
typedef struct CUstream_st *cudaStream_t;
typedef struct dim3 { unsigned x, y, z; } dim3;

cudaError_t cudaGetLastError(void);
const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device);
cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags);
cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status);
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int block, size_t shared_bytes);
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function);
cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute, int value);
cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared_bytes,
                             cudaStream_t stream);

extern struct fake_runtime {
  int device;                      /* the current one of two */
  enum cudaStreamCaptureMode mode;
  int is_capturing;                /* every stream */
  cudaError_t launch_error;        /* what launches give instead of running */
  int n_launches, n_asked;         /* launches; occupancies */
  int launched_on;                 /* the device of the last launch, and its stream */
  cudaStream_t stream;
  cudaError_t last_error;
} fake_runtime;

#endif
