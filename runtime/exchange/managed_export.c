/* SPDX-License-Identifier: Apache-2.0
 *
 * managed_export.c: exports of tensors, and new tensors; see dlpack_exchange.h. */
#include <errno.h>
#include <string.h>

#include "base/memory/device_memory.h"
#include "base/threads/thread_shield.h"
#include "core/base/status.h"
#include "core/tensor/device.h"
#include "core/tensor/tensor.h"
#include "exchange/descriptor.h"
#include "exchange/managed.h"
#include "exchange/managed_copy.h"
#include "exchange/managed_memory.h"

#define LARGEST_STRUCT 65536

/* ---- New tensors ---- */

/* A tensor like the prototype, compact, its memory uninitialised. */
static quern_status make_new(const char *function, const DLTensor *prototype, uint64_t flags, void *stream,
                             struct DLManagedTensorVersioned **managed) {
  DLTensor tensor;
  qn_descriptor descriptor;
  qn_managed_memory *memory;
  char text[QN_TENSOR_DTYPE_CHARS];
  if (!prototype) return qn_status_fail(QUERN_E_ARGUMENT, "%s: the prototype is NULL", function);
  tensor = *prototype;
  tensor.strides = NULL;
  tensor.byte_offset = 0;
  quern_status status = qn_descriptor_read(function, &tensor, 0, &descriptor);
  if (status) return status;
  if (!descriptor.is_whole)
    return qn_status_fail(QUERN_E_UNSUPPORTED, "%s: dtype %s has items of %u bits, expected whole bytes", function,
                          qn_tensor_dtype_text(tensor.dtype, text), (unsigned)tensor.dtype.bits);
  status = qn_managed_memory_make(function, tensor.device, stream, descriptor.n_elements * descriptor.item_bytes, &memory);
  if (status) return status;
  tensor.data = memory->data;
  status = qn_managed_make(function, &tensor, flags, qn_managed_memory_free, memory, managed);
  if (status) qn_managed_memory_free(memory);
  return status;
}

/* The name of the Python exception for a status. */
static const char *exception_of(quern_status status) {
  if (status == QUERN_E_MEMORY) return "MemoryError";
  if (status == QUERN_E_ARGUMENT) return "ValueError";
  return status == QUERN_E_DRIVER ? "RuntimeError" : "BufferError";
}

int quern_managed_alloc(DLTensor *prototype, struct DLManagedTensorVersioned **managed, void *error_ctx,
                        void (*set_error)(void *error_ctx, const char *kind, const char *message)) {
  static const char function[] = "managed_alloc";
  quern_status status;
  if (managed) {
    const int kept_errno = errno, kept_cancel = qn_thread_shield();
    *managed = NULL;
    status = make_new(function, prototype, 0, NULL, managed);
    qn_thread_unshield(kept_cancel);
    errno = kept_errno;
  } else {
    status = qn_status_fail(QUERN_E_ARGUMENT, "%s: the place for the managed tensor is NULL", function);
  }
  if (status && set_error) set_error(error_ctx, exception_of(status), quern_last_error());
  return status ? -1 : 0;
}

/* ---- Exports ---- */

static int is_same_device(DLDevice a, DLDevice b) { return a.device_type == b.device_type && a.device_id == b.device_id; }

/* Memory that the host can read once its device has finished. */
static int is_host_memory(DLDevice device) {
  return device.device_type == kDLCPU || (qn_device_is_host(device) && qn_device_memory_joined(device));
}

/* Copies the caller's struct: missing fields of a shorter one are 0, surplus fields of a longer one are ignored. */
static quern_status take_wish(const char *function, const quern_export *given, quern_export *wish) {
  if (given->size < sizeof given->size || given->size > LARGEST_STRUCT || given->size % sizeof given->size)
    return qn_status_fail(QUERN_E_VERSION, "%s: quern_export.size is %zu, which no version of it has; set it to "
                          "sizeof(quern_export)", function, given->size);
  memset(wish, 0, sizeof *wish);
  memcpy(wish, given, given->size < sizeof *wish ? given->size : sizeof *wish);
  if (wish->copy < QUERN_COPY_IF_NEEDED || wish->copy > QUERN_COPY_ALWAYS)
    return qn_status_fail(QUERN_E_ARGUMENT, "%s: quern_export.copy is %d, none of QUERN_COPY_*", function, (int)wish->copy);
  return QUERN_OK;
}

/* Checks that this tensor can be copied to that device. */
static quern_status check_way(const char *function, const DLTensor *tensor, const qn_descriptor *descriptor, DLDevice to) {
  const DLDevice from = tensor->device;
  char source[QN_DEVICE_CHARS], target[QN_DEVICE_CHARS], text[QN_TENSOR_DTYPE_CHARS];
  qn_device_text(from, source);
  qn_device_text(to, target);
  if (!is_host_memory(from) && !qn_device_memory_of(from))
    return qn_status_fail(QUERN_E_DEVICE, "%s: the tensor is on %s, which nothing here copies from", function, source);
  if (to.device_type != kDLCPU && !qn_device_memory_of(to))
    return qn_status_fail(QUERN_E_DEVICE, "%s: copies are made on the cpu and on CUDA devices, not on %s", function, target);
  if (qn_device_memory_of(to) && qn_device_memory_of(from) && !is_same_device(from, to))
    return qn_status_fail(QUERN_E_DEVICE, "%s: nothing here copies from %s to %s; ask for the cpu first", function, source,
                          target);
  if (!descriptor->is_whole)
    return qn_status_fail(QUERN_E_UNSUPPORTED, "%s: no copies are made of dtype %s, of items of %u bits", function,
                          qn_tensor_dtype_text(tensor->dtype, text), (unsigned)tensor->dtype.bits);
  return QUERN_OK;
}

/* Exports a copy. It does not need the owner, which is released at once. */
static quern_status export_copy(const char *function, const DLTensor *tensor, const qn_descriptor *descriptor, DLDevice to,
                                void (*release)(void *owner), void *owner, void *stream,
                                struct DLManagedTensorVersioned **managed) {
  struct DLManagedTensorVersioned *made;
  DLTensor prototype = *tensor;
  prototype.device = to;
  quern_status status = check_way(function, tensor, descriptor, to);
  if (status == QUERN_OK) status = qn_managed_copy_check(function, tensor->device, to, stream);
  if (status == QUERN_OK) status = make_new(function, &prototype, DLPACK_FLAG_BITMASK_IS_COPIED, stream, &made);
  if (status) return status;
  status = qn_managed_copy(function, tensor, descriptor, &made->dl_tensor, stream);
  if (status)
    qn_managed_delete(made);
  else
    *managed = made;
  if (status == QUERN_OK && release) release(owner);
  return status;
}

/* Exports the memory itself, with the device that the consumer asked for. */
static quern_status export_itself(const char *function, const DLTensor *tensor, DLDevice to, uint64_t flags,
                                  void (*release)(void *owner), void *owner, void *stream,
                                  struct DLManagedTensorVersioned **managed) {
  DLTensor named = *tensor;
  named.device = to;
  if (to.device_type == kDLCPU && tensor->device.device_type != kDLCPU) {
    quern_status status = qn_managed_copy_wait(function, tensor->device, stream);
    if (status) return status;
  }
  return qn_managed_make(function, &named, flags, release, owner, managed);
}

static quern_status export(const char *function, const DLTensor *tensor, uint64_t flags, void (*release)(void *owner),
                           void *owner, const quern_export *given, struct DLManagedTensorVersioned **managed) {
  char source[QN_DEVICE_CHARS], target[QN_DEVICE_CHARS];
  qn_descriptor descriptor;
  quern_export wish;
  quern_status status = qn_descriptor_read(function, tensor, 1, &descriptor);
  if (status) return status;
  if (!given) return qn_managed_make(function, tensor, flags, release, owner, managed);
  if ((status = take_wish(function, given, &wish))) return status;
  const DLDevice from = tensor->device;
  const int is_anywhere = wish.device.device_type == 0;
  DLDevice to = is_anywhere ? from : wish.device;
  const int is_there = is_same_device(from, to) || (to.device_type == kDLCPU && is_host_memory(from));
  if (is_there && wish.copy != QUERN_COPY_ALWAYS)
    return export_itself(function, tensor, to, flags, release, owner, wish.stream, managed);
  if (wish.copy == QUERN_COPY_NEVER)
    return qn_status_fail(QUERN_E_DEVICE, "%s: the tensor is on %s, and it takes a copy to have it on %s", function,
                          qn_device_text(from, source), qn_device_text(to, target));
  if (is_anywhere && is_host_memory(from)) to = (DLDevice){kDLCPU, 0};
  return export_copy(function, tensor, &descriptor, to, release, owner, wish.stream, managed);
}

quern_status quern_managed_export(const DLTensor *tensor, uint64_t flags, void (*release)(void *owner), void *owner,
                                  const quern_export *wish, struct DLManagedTensorVersioned **managed) {
  static const char function[] = "managed_export";
  if (!managed) return qn_status_fail(QUERN_E_ARGUMENT, "%s: the place for the managed tensor is NULL", function);
  const int kept_errno = errno, kept_cancel = qn_thread_shield(); /* cancellation would leak the tensor */
  *managed = NULL;
  const quern_status status = export(function, tensor, flags, release, owner, wish, managed);
  qn_thread_unshield(kept_cancel);
  errno = kept_errno;
  return status;
}
