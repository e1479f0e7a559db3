/* SPDX-License-Identifier: Apache-2.0
 *
 * t735-cuda-header: what cuda_driver.h declares of the driver and of NVRTC, against CUDA's own headers, where those are: the
 * values, the sizes, and that CUDA has each function, in the version that is asked for. */
#include "runtime/cuda/cuda_driver.h"
#include "tap.h"

#if !defined(__has_include)
#define __has_include(name) 0
#endif
#if __has_include("/usr/local/cuda/include/cuda.h")
#include "/usr/local/cuda/include/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __has_include("/usr/local/cuda/include/nvrtc.h")
#include "/usr/local/cuda/include/nvrtc.h"
#endif

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours)
SAME(QN_CUDA_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
SAME(QN_CUDA_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(QN_CUDA_NOT_INITIALIZED, CUDA_ERROR_NOT_INITIALIZED);
SAME(QN_CUDA_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME(QN_CUDA_INVALID_IMAGE, CUDA_ERROR_INVALID_IMAGE);
SAME(QN_CUDA_NO_BINARY_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME(QN_CUDA_INVALID_PTX, CUDA_ERROR_INVALID_PTX);
SAME(QN_CUDA_UNSUPPORTED_PTX_VERSION, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
SAME(QN_CUDA_NOT_FOUND, CUDA_ERROR_NOT_FOUND);
SAME(QN_CUDA_STREAM_CAPTURE_UNSUPPORTED, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
SAME(QN_CUDA_STREAM_CAPTURE_WRONG_THREAD, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
SAME(QN_CUDA_DEVICE_THREADS_PER_BLOCK, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME(QN_CUDA_DEVICE_MAX_GRID_X, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
SAME(QN_CUDA_DEVICE_MULTIPROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(QN_CUDA_DEVICE_L2_BYTES, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
SAME(QN_CUDA_DEVICE_THREADS_PER_MULTIPROCESSOR, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
SAME(QN_CUDA_DEVICE_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(QN_CUDA_DEVICE_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(QN_CUDA_POINTER_CONTEXT, CU_POINTER_ATTRIBUTE_CONTEXT);
SAME(QN_CUDA_POINTER_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME(QN_CUDA_POINTER_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_DEVICE_POINTER);
SAME(QN_CUDA_POINTER_IS_MANAGED, CU_POINTER_ATTRIBUTE_IS_MANAGED);
SAME(QN_CUDA_POINTER_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME(QN_CUDA_POINTER_RANGE_START, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
SAME(QN_CUDA_POINTER_RANGE_SIZE, CU_POINTER_ATTRIBUTE_RANGE_SIZE);
SAME(QN_CUDA_MEMORY_HOST, CU_MEMORYTYPE_HOST);
SAME(QN_CUDA_MEMORY_DEVICE, CU_MEMORYTYPE_DEVICE);
SAME(QN_CUDA_FUNCTION_THREADS_PER_BLOCK, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME(QN_CUDA_FUNCTION_SHARED_BYTES, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SAME(QN_CUDA_FUNCTION_LOCAL_BYTES, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
SAME(QN_CUDA_FUNCTION_REGISTERS, CU_FUNC_ATTRIBUTE_NUM_REGS);
SAME(QN_CUDA_CAPTURE_NONE, CU_STREAM_CAPTURE_STATUS_NONE);
SAME(QN_CUDA_CAPTURE_ACTIVE, CU_STREAM_CAPTURE_STATUS_ACTIVE);
SAME(QN_CUDA_CAPTURE_INVALIDATED, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
SAME(QN_CUDA_CAPTURE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
SAME(sizeof(qn_cuda_result), sizeof(CUresult));
SAME(sizeof(qn_cuda_device), sizeof(CUdevice));
SAME(sizeof(qn_cuda_address), sizeof(CUdeviceptr));
SAME(sizeof(int), sizeof(CUstreamCaptureStatus));
SAME(sizeof(int), sizeof(CUpointer_attribute));

#if defined(__NVRTC_H__)
SAME(QN_NVRTC_INVALID_OPTION, NVRTC_ERROR_INVALID_OPTION);
SAME(sizeof(int), sizeof(nvrtcResult));
SAME(sizeof(qn_nvrtc_program), sizeof(nvrtcProgram));
#endif

static char *read_file(const char *path) {
  FILE *file = fopen(path, "r");
  if (!file) return NULL;
  fseek(file, 0, SEEK_END);
  const long size = ftell(file);
  char *text = calloc(1, (size_t)size + 1);
  rewind(file);
  if (!text || fread(text, 1, (size_t)size, file) != (size_t)size) bail("%s cannot be read", path);
  fclose(file);
  return text;
}

/* How many arguments a list in parentheses has. */
static int n_arguments(const char *list) {
  int n = 1;
  for (; *list && *list != ')'; list++) n += *list == ',';
  return n;
}

int main(void) {
  char *types = read_file("/usr/local/cuda/include/cudaTypedefs.h"), wanted[128];
  pass("cuda.h: the values and the sizes are the same");
  if (!types) {
    skip(1, "no /usr/local/cuda/include/cudaTypedefs.h");
    return done_testing();
  }
#define CHECK(member, name, version, is_needed, arguments)                                                       \
  snprintf(wanted, sizeof wanted, "*PFN_%s_v%d)", name, version);                                                \
  const char *at_##member = strstr(types, wanted);                                                               \
  ok(at_##member && n_arguments(at_##member + strlen(wanted)) == n_arguments(#arguments), "%s of version %d is there", \
     name, version);
  QN_CUDA_FUNCTIONS(CHECK)
  free(types);
  char *nvrtc = read_file("/usr/local/cuda/include/nvrtc.h");
  if (!nvrtc) skip(1, "no /usr/local/cuda/include/nvrtc.h");
#define CHECK_NVRTC(member, name, arguments)                                                                     \
  const char *of_##member = nvrtc ? strstr(nvrtc, "nvrtcResult " name "(") : NULL;                               \
  if (nvrtc) {                                                                                                   \
    ok(of_##member && n_arguments(of_##member + strlen("nvrtcResult " name "(")) == n_arguments(#arguments + 1), \
       "%s is there", name);                                                                                     \
  }
  QN_NVRTC_FUNCTIONS(CHECK_NVRTC)
  free(nvrtc);
  return done_testing();
}
#else
int main(void) {
  skip_all("no /usr/local/cuda/include/cuda.h");
}
#endif
