/* SPDX-License-Identifier: Apache-2.0
 *
 * tvm_ffi_memory.c: see tvm_ffi_memory.h. */
#include "abi/tvm_ffi_memory.h"

#include <stdlib.h>

#define TVM_ALIGNMENT 256

/* A tensor in one piece of memory: this, shape and strides, the items. */
typedef struct qn_tvm_piece {
  struct DLManagedTensorVersioned managed;
  int64_t shape[QUERN_MAX_NDIM], strides[QUERN_MAX_NDIM];
} qn_tvm_piece;

static void free_tvm_piece(struct DLManagedTensorVersioned *managed) { free(managed->manager_ctx); }

int qn_tvm_alloc(DLTensor *prototype, struct DLManagedTensorVersioned **managed, void *error_ctx,
                 void (*fail)(void *error_ctx, const char *kind, const char *message)) {
  const size_t head = (sizeof(qn_tvm_piece) + TVM_ALIGNMENT - 1) / TVM_ALIGNMENT * TVM_ALIGNMENT;
  size_t n = prototype->dtype.bits / 8u;
  int fits = prototype->ndim <= QUERN_MAX_NDIM;
  if (prototype->device.device_type != kDLCPU)
    return fail(error_ctx, "RuntimeError", "there is none for this device, it makes CPU memory only; pass the outputs"), -1;
  for (int32_t d = 0; fits && d < prototype->ndim; d++) {
    const size_t extent = (size_t)prototype->shape[d];
    fits = extent == 0 || n <= (SIZE_MAX / 2 - head - TVM_ALIGNMENT) / extent;
    n *= fits ? extent : 0;
  }
  qn_tvm_piece *const piece =
      fits ? aligned_alloc(TVM_ALIGNMENT, head + (n + TVM_ALIGNMENT - 1) / TVM_ALIGNMENT * TVM_ALIGNMENT) : NULL;
  if (!piece) return fail(error_ctx, "MemoryError", "there is no memory for the result"), -1;
  int64_t stride = 1;
  for (int32_t d = prototype->ndim; d-- > 0;) {
    piece->shape[d] = prototype->shape[d];
    piece->strides[d] = stride;
    stride *= prototype->shape[d] > 0 ? prototype->shape[d] : 1;
  }
  piece->managed = (struct DLManagedTensorVersioned){
      .version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
      .manager_ctx = piece,
      .deleter = free_tvm_piece,
      .dl_tensor = {(char *)piece + head, prototype->device, prototype->ndim, prototype->dtype, piece->shape, piece->strides, 0}};
  *managed = &piece->managed;
  return 0;
}
