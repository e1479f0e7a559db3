/* SPDX-License-Identifier: Apache-2.0
 *
 * tvm_ffi_memory.h: memory of results, where the caller's environment has no allocator. */
#ifndef QN_TVM_FFI_MEMORY_H
#define QN_TVM_FFI_MEMORY_H

#include "abi/tvm_ffi_abi.h"

/* A quern_allocator of CPU memory, aligned to 256 bytes. */
int qn_tvm_alloc(DLTensor *prototype, struct DLManagedTensorVersioned **managed, void *error_ctx,
                 void (*fail)(void *error_ctx, const char *kind, const char *message));

#endif
