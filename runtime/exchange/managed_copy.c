/* SPDX-License-Identifier: Apache-2.0
 *
 * managed_copy.c: see managed_copy.h. Compact tensors are copied as bytes. Others are gathered by the op copy as words, the
 * longest that item size and address allow, so that any dtype is supported. */
#include "exchange/managed_copy.h"

#include <stdio.h>
#include <string.h>

#include "cuda/cuda_context.h"
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
static int64_t word_bytes(const qn_descriptor *descriptor, int is_cuda) {
  const uint64_t misaligned = (uint64_t)descriptor->item_bytes | (is_cuda ? (uint64_t)(uintptr_t)descriptor->data : 0);
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
  const int64_t bytes = word_bytes(descriptor, g->device.device_type == kDLCUDA), n_words = descriptor->item_bytes / bytes;
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
  quern_status status = quern_op_find(NULL, "copy", &g.op);
  if (status == QUERN_E_NOTFOUND)
    return qn_status_fail(QUERN_E_UNSUPPORTED, "%s: the tensor is not compact, and this library is built without the op copy",
                          function);
  if (status) return status;
  plan_gather(&g, from, descriptor);
  status = run_gather(&g, descriptor->data, to);
  quern_op_release(g.op);
  return status;
}

/* ---- CUDA ---- */

static quern_status refuse_capturing(const char *function) {
  return qn_status_fail(QUERN_E_CAPTURING, "%s: the stream is being captured, and what this takes cannot be part of a graph",
                        function);
}

static quern_status fail_cuda(const char *function, const qn_cuda_scope *scope, qn_cuda_result result, const char *of_driver) {
  char what[96];
  if (result == 0) return QUERN_OK;
  snprintf(what, sizeof what, "%s: %s", function, of_driver);
  return qn_cuda_fail(scope->driver, result, what);
}

quern_status qn_managed_copy_check(const char *function, DLDevice from, DLDevice to, void *stream) {
  const DLDevice device = to.device_type == kDLCUDA ? to : from;
  qn_cuda_scope scope;
  if (device.device_type != kDLCUDA) return QUERN_OK;
  quern_status status = qn_cuda_enter(device.device_id, stream, &scope);
  if (status) return status;
  if (qn_cuda_is_capturing(scope.driver, stream)) status = refuse_capturing(function);
  qn_cuda_leave(&scope);
  return status;
}

static quern_status synchronize(const char *function, const qn_cuda_scope *scope, void *stream) {
  return fail_cuda(function, scope, scope->driver->stream_synchronize(stream), "cuStreamSynchronize");
}

/* From the device's memory to the host's, both compact. */
static quern_status fetch(const char *function, int32_t ordinal, const char *from, char *to, size_t n_bytes, void *stream) {
  qn_cuda_scope scope;
  quern_status status = qn_cuda_enter(ordinal, stream, &scope);
  if (status) return status;
  const qn_cuda_result result = scope.driver->copy_to_host(to, (qn_cuda_address)(uintptr_t)from, n_bytes, stream);
  status = fail_cuda(function, &scope, result, "cuMemcpyDtoHAsync");
  if (status == QUERN_OK) status = synchronize(function, &scope, stream);
  qn_cuda_leave(&scope);
  return status;
}

/* From the host's memory to the device's. Synchronises: pinned memory is read later, in stream order, and its owner may
 * reuse it after this returns. */
static quern_status bring(const char *function, int32_t ordinal, const char *from, char *to, size_t n_bytes, void *stream) {
  qn_cuda_scope scope;
  quern_status status = qn_cuda_enter(ordinal, stream, &scope);
  if (status) return status;
  const qn_cuda_result result = scope.driver->copy_to_device((qn_cuda_address)(uintptr_t)to, from, n_bytes, stream);
  status = fail_cuda(function, &scope, result, "cuMemcpyHtoDAsync");
  if (status == QUERN_OK) status = synchronize(function, &scope, stream);
  qn_cuda_leave(&scope);
  return status;
}

/* Within the device's memory. */
static quern_status move(const char *function, int32_t ordinal, const char *from, char *to, size_t n_bytes, void *stream) {
  qn_cuda_scope scope;
  quern_status status = qn_cuda_enter(ordinal, stream, &scope);
  if (status) return status;
  const qn_cuda_result result =
      scope.driver->copy((qn_cuda_address)(uintptr_t)to, (qn_cuda_address)(uintptr_t)from, n_bytes, stream);
  status = fail_cuda(function, &scope, result, "cuMemcpyAsync");
  qn_cuda_leave(&scope);
  return status;
}

/* Enters the stream's context. For the default streams, which every context has: the current one, else the primary one of the
 * memory's device. */
static quern_status enter_for_wait(const char *function, const qn_cuda_driver *driver, int32_t ordinal, void *stream,
                                   qn_cuda_scope *scope) {
  qn_cuda_context context = NULL;
  const int is_created = (uintptr_t)stream > 2;
  *scope = (qn_cuda_scope){.driver = driver, .ordinal = ordinal};
  qn_cuda_result result = is_created ? driver->stream_context(stream, &context) : driver->context_get(&context);
  if (result) return fail_cuda(function, scope, result, is_created ? "cuStreamGetCtx" : "cuCtxGetCurrent");
  if (!context) return qn_cuda_enter(ordinal, stream, scope);
  if (!is_created) return QUERN_OK;
  result = driver->context_push(context);
  scope->is_pushed = result == 0;
  return fail_cuda(function, scope, result, "cuCtxPushCurrent");
}

quern_status qn_managed_copy_wait(const char *function, DLDevice device, void *stream) {
  qn_cuda_scope scope;
  qn_sentence kept;
  quern_status status;
  if (device.device_type != kDLCUDAHost && device.device_type != kDLCUDAManaged) return QUERN_OK;
  qn_status_keep(&kept);
  const qn_cuda_driver *driver = qn_cuda_open(&status);
  if (!driver) { /* then no work is pending */
    if (status == QUERN_E_DEVICE) qn_status_restore(&kept);
    return status == QUERN_E_DEVICE ? QUERN_OK : status;
  }
  if ((status = enter_for_wait(function, driver, device.device_id, stream, &scope))) return status;
  status = qn_cuda_is_capturing(driver, stream) ? refuse_capturing(function) : synchronize(function, &scope, stream);
  qn_cuda_leave(&scope);
  return status;
}

/* ---- Copies by direction ---- */

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

static quern_status copy_to_device(const char *function, const DLTensor *from, const qn_descriptor *descriptor, int32_t ordinal,
                                   char *to, size_t n_bytes, void *stream) {
  qn_managed_memory *apart;
  if (descriptor->is_compact) return bring(function, ordinal, descriptor->data, to, n_bytes, stream);
  quern_status status = qn_managed_copy_wait(function, from->device, stream);
  if (status == QUERN_OK)
    status = gather_apart(function, from, descriptor, (DLDevice){kDLCPU, 0}, n_bytes, NULL, &apart);
  if (status) return status;
  status = bring(function, ordinal, apart->data, to, n_bytes, stream);
  qn_managed_memory_free(apart);
  return status;
}

static quern_status copy_to_host(const char *function, const DLTensor *from, const qn_descriptor *descriptor, char *to,
                                 size_t n_bytes, void *stream) {
  const int32_t ordinal = from->device.device_id;
  qn_managed_memory *apart;
  if (descriptor->is_compact) return fetch(function, ordinal, descriptor->data, to, n_bytes, stream);
  quern_status status = gather_apart(function, from, descriptor, from->device, n_bytes, stream, &apart);
  if (status) return status;
  status = fetch(function, ordinal, apart->data, to, n_bytes, stream);
  qn_managed_memory_free(apart);
  return status;
}

quern_status qn_managed_copy(const char *function, const DLTensor *from, const qn_descriptor *descriptor, const DLTensor *to,
                             void *stream) {
  const size_t n_bytes = (size_t)(descriptor->n_elements * descriptor->item_bytes);
  const int is_from_cuda = from->device.device_type == kDLCUDA, is_to_cuda = to->device.device_type == kDLCUDA;
  const int32_t ordinal = to->device.device_id;
  if (n_bytes == 0) return QUERN_OK;
  if (is_from_cuda && is_to_cuda && descriptor->is_compact)
    return move(function, ordinal, descriptor->data, to->data, n_bytes, stream);
  if (is_from_cuda && is_to_cuda) return gather_items(function, from, descriptor, to->device, to->data, stream);
  if (is_from_cuda) return copy_to_host(function, from, descriptor, to->data, n_bytes, stream);
  if (is_to_cuda) return copy_to_device(function, from, descriptor, ordinal, to->data, n_bytes, stream);
  return copy_on_host(function, from, descriptor, to->data, n_bytes, stream);
}
