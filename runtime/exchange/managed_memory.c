/* SPDX-License-Identifier: Apache-2.0
 *
 * managed_memory.c: see managed_memory.h. */
#include "exchange/managed_memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/status.h"
#include "core/tensor/device.h"
#include "core/tensor/tensor.h"
#include "core/base/thread.h"
#include "cuda/cuda_context.h"

enum { ALIGNMENT = 256 };

/* One allocation: the struct, then the aligned memory. */
static quern_status make_on_host(const char *function, int64_t n_bytes, qn_managed_memory **memory) {
  _Static_assert(sizeof(qn_managed_memory) <= ALIGNMENT, "the struct has its place before the memory");
  const size_t room = ((size_t)n_bytes + 2 * ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  qn_managed_memory *made = aligned_alloc(ALIGNMENT, room);
  if (!made) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory for %lld bytes", function, (long long)n_bytes);
  *made = (qn_managed_memory){{kDLCPU, 0}, n_bytes ? (char *)made + ALIGNMENT : NULL};
  *memory = made;
  return QUERN_OK;
}

/* Allocates in a context that works with the stream; captures of other streams do not matter. */
static quern_status make_there(int32_t ordinal, void *stream, int64_t n_bytes, char **data) {
  qn_cuda_scope scope;
  qn_cuda_address address = 0;
  char what[64];
  quern_status status = qn_cuda_enter(ordinal, stream, &scope);
  if (status) return status;
  if (n_bytes) {
    const int kept_mode = qn_cuda_relax(scope.driver);
    const qn_cuda_result result = scope.driver->memory_allocate(&address, (size_t)n_bytes);
    qn_cuda_unrelax(scope.driver, kept_mode);
    snprintf(what, sizeof what, "cuda:%d: %lld bytes", (int)ordinal, (long long)n_bytes);
    if (result) status = qn_cuda_fail(scope.driver, result, what);
  }
  qn_cuda_leave(&scope);
  *data = (char *)(uintptr_t)address;
  return status;
}

static quern_status make_on_device(const char *function, DLDevice device, void *stream, int64_t n_bytes,
                                   qn_managed_memory **memory) {
  qn_managed_memory *made = malloc(sizeof *made);
  if (!made) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", function);
  *made = (qn_managed_memory){device, NULL};
  const quern_status status = make_there(device.device_id, stream, n_bytes, &made->data);
  if (status)
    free(made);
  else
    *memory = made;
  return status;
}

quern_status qn_managed_memory_make(const char *function, DLDevice device, void *stream, int64_t n_bytes,
                                    qn_managed_memory **memory) {
  char text[QN_DEVICE_CHARS];
  if (device.device_type == kDLCPU) return make_on_host(function, n_bytes, memory);
  if (device.device_type == kDLCUDA) return make_on_device(function, device, stream, n_bytes, memory);
  return qn_status_fail(QUERN_E_DEVICE, "%s: memory is made on the cpu and on CUDA devices, not on %s", function,
                        qn_device_text(device, text));
}

/* Frees in the context of the allocation, if the driver knows it: the caller's current one may be another. */
static void free_by(const qn_cuda_driver *driver, qn_cuda_address address) {
  static const int attributes[] = {QN_CUDA_POINTER_CONTEXT};
  qn_cuda_context its = NULL;
  void *values[] = {&its};
  if (driver->pointer_attributes(1, attributes, values, address)) its = NULL;
  const int is_pushed = its && driver->context_push(its) == 0;
  driver->memory_free(address);
  if (is_pushed) driver->context_pop(&its);
}

static void free_there(int32_t ordinal, char *data) {
  const int kept_errno = errno, kept_cancel = qn_thread_shield();
  qn_cuda_scope scope;
  qn_sentence kept;
  qn_status_keep(&kept);
  if (qn_cuda_enter(ordinal, NULL, &scope) == QUERN_OK) {
    const int kept_mode = qn_cuda_relax(scope.driver);
    free_by(scope.driver, (qn_cuda_address)(uintptr_t)data);
    qn_cuda_unrelax(scope.driver, kept_mode);
    qn_cuda_leave(&scope);
  }
  qn_status_restore(&kept);
  qn_thread_unshield(kept_cancel);
  errno = kept_errno;
}

void qn_managed_memory_free(void *memory) {
  qn_managed_memory *made = memory;
  if (made->device.device_type == kDLCUDA && made->data) free_there(made->device.device_id, made->data);
  free(made);
}
