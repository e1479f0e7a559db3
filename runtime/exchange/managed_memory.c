/* SPDX-License-Identifier: Apache-2.0
 *
 * managed_memory.c: see managed_memory.h. */
#include "exchange/managed_memory.h"

#include <stdlib.h>

#include "base/memory/device_memory.h"
#include "core/base/status.h"
#include "core/tensor/device.h"
#include "core/tensor/tensor.h"

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

static quern_status make_on_device(const char *function, const qn_device_memory *there, DLDevice device, void *stream,
                                   int64_t n_bytes, qn_managed_memory **memory) {
  qn_managed_memory *made = malloc(sizeof *made);
  if (!made) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", function);
  *made = (qn_managed_memory){device, NULL};
  const quern_status status = there->make(device, stream, n_bytes, &made->data);
  if (status)
    free(made);
  else
    *memory = made;
  return status;
}

quern_status qn_managed_memory_make(const char *function, DLDevice device, void *stream, int64_t n_bytes,
                                    qn_managed_memory **memory) {
  const qn_device_memory *there = qn_device_memory_of(device);
  char text[QN_DEVICE_CHARS];
  if (device.device_type == kDLCPU) return make_on_host(function, n_bytes, memory);
  if (there) return make_on_device(function, there, device, stream, n_bytes, memory);
  return qn_status_fail(QUERN_E_DEVICE, "%s: memory is made on the cpu and on CUDA devices, not on %s", function,
                        qn_device_text(device, text));
}

void qn_managed_memory_free(void *memory) {
  qn_managed_memory *made = memory;
  if (made->device.device_type != kDLCPU && made->data) qn_device_memory_of(made->device)->free(made->device, made->data);
  free(made);
}
