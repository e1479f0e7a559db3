/* SPDX-License-Identifier: Apache-2.0
 *
 * managed_copy.c: see managed_copy.h. Compact tensors are copied as bytes. Others are gathered by the op copy as words, the
 * longest that item size and address allow, so that any dtype is supported. */
#include "exchange/managed_copy.h"

#include <string.h>

#include "base/memory/device_memory.h"
#include "base/own_ops.h"
#include "core/base/status.h"
#include "exchange/managed_memory.h"

/* ---- Gathering ---- */

/* A dtype with words of that many bytes, which the op copy moves unchanged. */
static DLDataType word_dtype(int64_t bytes) {
  switch (bytes) {
    case 8: return (DLDataType){kDLInt, 64, 1};
    case 4: return (DLDataType){kDLInt, 32, 1};
    case 2: return (DLDataType){kDLFloat, 16, 1};
    default: return (DLDataType){kDLUInt, 8, 1};
  }
}

/* The longest word that divides items; on a device it must also be aligned. */
static int64_t word_bytes(const qn_descriptor *descriptor, int is_device) {
  const uint64_t misaligned = (uint64_t)descriptor->item_bytes | (is_device ? (uint64_t)(uintptr_t)descriptor->data : 0);
  int64_t bytes = 8;
  while (misaligned & (uint64_t)(bytes - 1)) bytes /= 2;
  return bytes;
}

/* A gather: the source's dimensions except those of extent 1, then the words of an item; strides in words. */
typedef struct gather {
  quern_op *op;
  DLDevice device;
  DLDataType dtype;
  void *stream;
  int32_t ndim;
  int64_t shape[QUERN_MAX_NDIM + 1], strides[QUERN_MAX_NDIM + 1];
} gather;

static void plan_gather(gather *g, const DLTensor *from, const qn_descriptor *descriptor) {
  const int64_t bytes = word_bytes(descriptor, g->device.device_type != kDLCPU), n_words = descriptor->item_bytes / bytes;
  int64_t strides[QUERN_MAX_NDIM];
  qn_descriptor_strides(from, strides);
  g->dtype = word_dtype(bytes);
  g->ndim = 0;
  for (int32_t k = 0; k < from->ndim; k++) {
    if (from->shape[k] == 1) continue;
    g->shape[g->ndim] = from->shape[k];
    g->strides[g->ndim++] = strides[k] * n_words;
  }
  if (n_words == 1) return;
  g->shape[g->ndim] = n_words;
  g->strides[g->ndim++] = 1;
}

/* Copies the dimensions from `first` on. */
static quern_status call_gather(gather *g, int32_t first, char *from, char *to) {
  DLTensor source = {from, g->device, g->ndim - first, g->dtype, g->shape + first, g->strides + first, 0}, target = source;
  DLTensor *in = &source, *out = &target;
  const quern_call call = {.size = sizeof call, .stream = g->stream};
  target.data = to;
  target.strides = NULL;
  return quern_op_call(g->op, 1, &in, 1, &out, &call);
}

/* If the words of an item are one dimension too many, calls once for each index of the outermost. */
static quern_status run_gather(gather *g, char *from, char *to) {
  if (g->ndim <= QUERN_MAX_NDIM) return call_gather(g, 0, from, to);
  const int64_t bytes = g->dtype.bits / 8;
  int64_t slab = bytes;
  quern_status status = QUERN_OK;
  for (int32_t k = 1; k < g->ndim; k++) slab *= g->shape[k];
  for (int64_t i = 0; i < g->shape[0] && status == QUERN_OK; i++)
    status = call_gather(g, 1, from + i * g->strides[0] * bytes, to + i * slab);
  return status;
}

/* Gathers into compact memory of the same device. */
static quern_status gather_items(const char *function, const DLTensor *from, const qn_descriptor *descriptor, DLDevice device,
                                 char *to, void *stream) {
  gather g = {.device = device, .stream = stream};
  if (!qn_own_ops.copy)
    return qn_status_fail(QUERN_E_UNSUPPORTED, "%s: the tensor is not compact, and this library is built without the op copy",
                          function);
  quern_status status = quern_op_find(NULL, qn_own_ops.copy->info.name, &g.op);
  if (status) return status;
  plan_gather(&g, from, descriptor);
  status = run_gather(&g, descriptor->data, to);
  quern_op_release(g.op);
  return status;
}

/* ---- Copies by direction ---- */

quern_status qn_managed_copy_check(const char *function, DLDevice from, DLDevice to, void *stream) {
  const DLDevice device = qn_device_memory_of(to) ? to : from;
  const qn_device_memory *there = qn_device_memory_of(device);
  return there ? there->check(function, device, stream) : QUERN_OK;
}

quern_status qn_managed_copy_wait(const char *function, DLDevice device, void *stream) {
  const qn_device_memory *owner = qn_device_memory_joined(device);
  return owner ? owner->wait(function, device, stream) : QUERN_OK;
}

/* Gathers a strided source into new memory. */
static quern_status gather_apart(const char *function, const DLTensor *from, const qn_descriptor *descriptor, DLDevice device,
                                 size_t n_bytes, void *stream, qn_managed_memory **memory) {
  quern_status status = qn_managed_memory_make(function, device, stream, (int64_t)n_bytes, memory);
  if (status) return status;
  status = gather_items(function, from, descriptor, device, (*memory)->data, stream);
  if (status) qn_managed_memory_free(*memory);
  return status;
}

static quern_status copy_on_host(const char *function, const DLTensor *from, const qn_descriptor *descriptor, char *to,
                                 size_t n_bytes, void *stream) {
  quern_status status = qn_managed_copy_wait(function, from->device, stream);
  if (status) return status;
  if (!descriptor->is_compact) return gather_items(function, from, descriptor, (DLDevice){kDLCPU, 0}, to, NULL);
  memcpy(to, descriptor->data, n_bytes);
  return QUERN_OK;
}

static quern_status copy_to_device(const char *function, const DLTensor *from, const qn_descriptor *descriptor, DLDevice device,
                                   char *to, size_t n_bytes, void *stream) {
  const qn_device_memory *there = qn_device_memory_of(device);
  qn_managed_memory *apart;
  if (descriptor->is_compact) return there->from_host(function, device, descriptor->data, to, n_bytes, stream);
  quern_status status = qn_managed_copy_wait(function, from->device, stream);
  if (status == QUERN_OK)
    status = gather_apart(function, from, descriptor, (DLDevice){kDLCPU, 0}, n_bytes, NULL, &apart);
  if (status) return status;
  status = there->from_host(function, device, apart->data, to, n_bytes, stream);
  qn_managed_memory_free(apart);
  return status;
}

static quern_status copy_to_host(const char *function, const DLTensor *from, const qn_descriptor *descriptor, char *to,
                                 size_t n_bytes, void *stream) {
  const qn_device_memory *there = qn_device_memory_of(from->device);
  qn_managed_memory *apart;
  if (descriptor->is_compact) return there->to_host(function, from->device, descriptor->data, to, n_bytes, stream);
  quern_status status = gather_apart(function, from, descriptor, from->device, n_bytes, stream, &apart);
  if (status) return status;
  status = there->to_host(function, from->device, apart->data, to, n_bytes, stream);
  qn_managed_memory_free(apart);
  return status;
}

quern_status qn_managed_copy(const char *function, const DLTensor *from, const qn_descriptor *descriptor, const DLTensor *to,
                             void *stream) {
  const size_t n_bytes = (size_t)(descriptor->n_elements * descriptor->item_bytes);
  const qn_device_memory *source = qn_device_memory_of(from->device), *target = qn_device_memory_of(to->device);
  const DLDevice device = to->device;
  if (n_bytes == 0) return QUERN_OK;
  if (source && target && descriptor->is_compact)
    return target->move(function, device, descriptor->data, to->data, n_bytes, stream);
  if (source && target) return gather_items(function, from, descriptor, device, to->data, stream);
  if (source) return copy_to_host(function, from, descriptor, to->data, n_bytes, stream);
  if (target) return copy_to_device(function, from, descriptor, device, to->data, n_bytes, stream);
  return copy_on_host(function, from, descriptor, to->data, n_bytes, stream);
}
