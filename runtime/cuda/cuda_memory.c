/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_memory.c: see cuda_memory.h. */
#include "cuda/cuda_memory.h"

#include <errno.h>
#include <stdio.h>

#include "core/base/status.h"
#include "base/threads/thread_shield.h"
#include "cuda/cuda_context.h"

/* ---- Allocation ---- */

/* Allocates in a context that works with the stream; captures of other streams do not matter. */
static quern_status make_memory(DLDevice device, void *stream, int64_t n_bytes, char **data) {
  qn_cuda_scope scope;
  qn_cuda_address address = 0;
  char what[64];
  quern_status status = qn_cuda_enter(device.device_id, stream, &scope);
  if (status) return status;
  if (n_bytes) {
    const int kept_mode = qn_cuda_relax(scope.driver);
    const qn_cuda_result result = scope.driver->memory_allocate(&address, (size_t)n_bytes);
    qn_cuda_unrelax(scope.driver, kept_mode);
    snprintf(what, sizeof what, "cuda:%d: %lld bytes", (int)device.device_id, (long long)n_bytes);
    if (result) status = qn_cuda_fail(scope.driver, result, what);
  }
  qn_cuda_leave(&scope);
  *data = (char *)(uintptr_t)address;
  return status;
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

static void free_memory(DLDevice device, char *data) {
  const int kept_errno = errno, kept_cancel = qn_thread_shield();
  qn_cuda_scope scope;
  qn_sentence kept;
  qn_status_keep(&kept);
  if (qn_cuda_enter(device.device_id, NULL, &scope) == QUERN_OK) {
    const int kept_mode = qn_cuda_relax(scope.driver);
    free_by(scope.driver, (qn_cuda_address)(uintptr_t)data);
    qn_cuda_unrelax(scope.driver, kept_mode);
    qn_cuda_leave(&scope);
  }
  qn_status_restore(&kept);
  qn_thread_unshield(kept_cancel);
  errno = kept_errno;
}

/* ---- Copies ---- */

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

static quern_status check_memory(const char *function, DLDevice device, void *stream) {
  qn_cuda_scope scope;
  quern_status status = qn_cuda_enter(device.device_id, stream, &scope);
  if (status) return status;
  if (qn_cuda_is_capturing(scope.driver, stream)) status = refuse_capturing(function);
  qn_cuda_leave(&scope);
  return status;
}

static quern_status synchronize(const char *function, const qn_cuda_scope *scope, void *stream) {
  return fail_cuda(function, scope, scope->driver->stream_synchronize(stream), "cuStreamSynchronize");
}

/* A copy between the device's memory and the host's, both compact. Waits for it: pinned memory is accessed later, in stream
 * order, and its owner may reuse it after this returns. */
static quern_status copy_and_wait(const char *function, DLDevice device, int is_to_host, const char *from, char *to,
                                  size_t n_bytes, void *stream) {
  qn_cuda_scope scope;
  quern_status status = qn_cuda_enter(device.device_id, stream, &scope);
  if (status) return status;
  const qn_cuda_driver *driver = scope.driver;
  const qn_cuda_result result = is_to_host ? driver->copy_to_host(to, (qn_cuda_address)(uintptr_t)from, n_bytes, stream)
                                           : driver->copy_to_device((qn_cuda_address)(uintptr_t)to, from, n_bytes, stream);
  status = fail_cuda(function, &scope, result, is_to_host ? "cuMemcpyDtoHAsync" : "cuMemcpyHtoDAsync");
  if (status == QUERN_OK) status = synchronize(function, &scope, stream);
  qn_cuda_leave(&scope);
  return status;
}

static quern_status copy_to_host(const char *function, DLDevice device, const char *from, char *to, size_t n_bytes,
                                 void *stream) {
  return copy_and_wait(function, device, 1, from, to, n_bytes, stream);
}

static quern_status copy_from_host(const char *function, DLDevice device, const char *from, char *to, size_t n_bytes,
                                   void *stream) {
  return copy_and_wait(function, device, 0, from, to, n_bytes, stream);
}

/* Within the device's memory. */
static quern_status copy_within(const char *function, DLDevice device, const char *from, char *to, size_t n_bytes, void *stream) {
  qn_cuda_scope scope;
  quern_status status = qn_cuda_enter(device.device_id, stream, &scope);
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

static quern_status wait_for_memory(const char *function, DLDevice device, void *stream) {
  qn_cuda_scope scope;
  qn_sentence kept;
  quern_status status;
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

const qn_device_memory qn_cuda_memory = {.make = make_memory, .free = free_memory, .check = check_memory,
                                         .to_host = copy_to_host, .from_host = copy_from_host, .move = copy_within,
                                         .wait = wait_for_memory};
