/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_context.c: see cuda_context.h. As in cuda_driver.c no lock is held while the driver runs: concurrent first calls all
 * ask the driver, and the first answer is kept for all. */
#include "cuda/cuda_context.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/threads/thread_shield.h"

typedef struct device {
  _Atomic(qn_cuda_context) primary; /* NULL: not retained so far */
  _Atomic(const qn_cuda_facts *) facts;
} device;

/* One element for each device of the driver; never freed. */
static _Atomic(device *) the_devices;

static device *devices(const qn_cuda_driver *d) {
  device *all = atomic_load(&the_devices), *first = NULL;
  if (all) return all;
  all = calloc((size_t)d->n_devices, sizeof *all);
  if (!all || atomic_compare_exchange_strong(&the_devices, &first, all)) return all;
  free(all);
  return first;
}

/* Finds the driver and one of its devices. */
static quern_status find(int32_t ordinal, const qn_cuda_driver **driver, device **found) {
  quern_status status;
  const qn_cuda_driver *d = *driver = qn_cuda_open(&status);
  if (!d) return status;
  if (ordinal < 0 || ordinal >= d->n_devices)
    return qn_status_fail(QUERN_E_DEVICE, "cuda:%d: there is no such device, only %d", (int)ordinal, d->n_devices);
  device *all = devices(d);
  if (!all) return qn_status_fail(QUERN_E_MEMORY, "cuda: out of memory");
  *found = all + ordinal;
  return QUERN_OK;
}

static quern_status fail(const qn_cuda_driver *d, qn_cuda_result result, int32_t ordinal, const char *function) {
  char what[64];
  snprintf(what, sizeof what, "cuda:%d: %s", (int)ordinal, function);
  return qn_cuda_fail(d, result, what);
}

/* ---- Captures ---- */

enum { UNKNOWN_MODE = -1 };

int qn_cuda_relax(const qn_cuda_driver *d) {
  int mode = QN_CUDA_CAPTURE_RELAXED;
  return d->capture_mode(&mode) ? UNKNOWN_MODE : mode;
}

void qn_cuda_unrelax(const qn_cuda_driver *d, int kept) {
  if (kept != UNKNOWN_MODE) d->capture_mode(&kept);
}

int qn_cuda_is_capturing(const qn_cuda_driver *d, void *stream) {
  int capture = QN_CUDA_CAPTURE_NONE;
  const qn_cuda_result result = d->stream_is_capturing(stream, &capture);
  if (result) return result >= QN_CUDA_STREAM_CAPTURE_UNSUPPORTED && result <= QN_CUDA_STREAM_CAPTURE_WRONG_THREAD;
  return capture != QN_CUDA_CAPTURE_NONE;
}

/* ---- Contexts ---- */

/* Retained, not made current. */
static qn_cuda_result retain_primary(const qn_cuda_driver *d, qn_cuda_device number, device *of, qn_cuda_context *context) {
  qn_cuda_context first = NULL, own = NULL;
  if ((*context = atomic_load(&of->primary))) return 0;
  const int kept = qn_cuda_relax(d);
  const qn_cuda_result result = d->primary_retain(&own, number);
  if (!result) {
    *context = atomic_compare_exchange_strong(&of->primary, &first, own) ? own : first;
    if (first) d->primary_release(number);
  }
  qn_cuda_unrelax(d, kept);
  return result;
}

/* 0: the stream is one of the three predefined ones. */
static int is_created(void *stream) { return (uintptr_t)stream > 2; }

static quern_status push(qn_cuda_scope *scope, qn_cuda_context context, qn_cuda_context current) {
  scope->context = context;
  if (context == current) return QUERN_OK;
  const qn_cuda_result result = scope->driver->context_push(context);
  if (result) return fail(scope->driver, result, scope->ordinal, "cuCtxPushCurrent");
  scope->is_pushed = 1;
  return QUERN_OK;
}

static quern_status enter_of_stream(qn_cuda_scope *scope, void *stream, qn_cuda_context current) {
  const qn_cuda_driver *d = scope->driver;
  qn_cuda_context context = NULL;
  qn_cuda_device its = -1;
  qn_cuda_result result = d->stream_context(stream, &context);
  if (result) return fail(d, result, scope->ordinal, "cuStreamGetCtx");
  const quern_status status = push(scope, context, current);
  if (status) return status;
  if ((result = d->context_device(&its))) return fail(d, result, scope->ordinal, "cuCtxGetDevice");
  if (its == scope->device) return QUERN_OK;
  return qn_status_fail(QUERN_E_DEVICE, "the stream is of cuda:%d, the operands are on cuda:%d", (int)its, (int)scope->ordinal);
}

static quern_status enter_of_device(qn_cuda_scope *scope, device *of, qn_cuda_context current) {
  const qn_cuda_driver *d = scope->driver;
  qn_cuda_context context = current;
  qn_cuda_device its = -1;
  qn_cuda_result result = current ? d->context_device(&its) : 0;
  if (result) return fail(d, result, scope->ordinal, "cuCtxGetDevice");
  if (current && its == scope->device) return push(scope, current, current);
  result = retain_primary(d, scope->device, of, &context);
  if (result) return fail(d, result, scope->ordinal, "cuDevicePrimaryCtxRetain");
  return push(scope, context, current);
}

static quern_status enter(qn_cuda_scope *scope, void *stream, device *of) {
  const qn_cuda_driver *d = scope->driver;
  qn_cuda_context current = NULL;
  unsigned long long id = 0;
  qn_cuda_result result = d->device_get(&scope->device, scope->ordinal);
  if (result) return fail(d, result, scope->ordinal, "cuDeviceGet");
  if ((result = d->context_get(&current))) return fail(d, result, scope->ordinal, "cuCtxGetCurrent");
  const quern_status status = is_created(stream) ? enter_of_stream(scope, stream, current)
                                                 : enter_of_device(scope, of, current);
  if (status) return status;
  if (d->context_id && (result = d->context_id(scope->context, &id)))
    return fail(d, result, scope->ordinal, "cuCtxGetId");
  scope->id = id;
  return QUERN_OK;
}

quern_status qn_cuda_enter(int32_t ordinal, void *stream, qn_cuda_scope *scope) {
  const int kept_errno = errno, kept_cancel = qn_thread_shield();
  device *of;
  *scope = (qn_cuda_scope){.ordinal = ordinal};
  quern_status status = find(ordinal, &scope->driver, &of);
  if (!status) {
    status = enter(scope, stream, of);
    if (status) qn_cuda_leave(scope);
  }
  qn_thread_unshield(kept_cancel);
  errno = kept_errno;
  return status;
}

void qn_cuda_leave(const qn_cuda_scope *scope) {
  const int kept_errno = errno;
  qn_cuda_context popped;
  if (scope->is_pushed) scope->driver->context_pop(&popped);
  errno = kept_errno;
}

/* ---- Devices ---- */

static quern_status ask(const qn_cuda_driver *d, int32_t ordinal, qn_cuda_facts *facts) {
  int major = 0, minor = 0;
  const struct { int attribute, *value; } wanted[] = {
    {QN_CUDA_DEVICE_MAJOR, &major}, {QN_CUDA_DEVICE_MINOR, &minor},
    {QN_CUDA_DEVICE_MULTIPROCESSORS, &facts->multiprocessors},
    {QN_CUDA_DEVICE_THREADS_PER_MULTIPROCESSOR, &facts->threads_per_multiprocessor},
    {QN_CUDA_DEVICE_L2_BYTES, &facts->l2_bytes}, {QN_CUDA_DEVICE_MAX_GRID_X, &facts->max_grid},
    {QN_CUDA_DEVICE_SHARED_PER_MULTIPROCESSOR, &facts->shared_per_multiprocessor},
  };
  qn_cuda_device number = 0;
  qn_cuda_result result = d->device_get(&number, ordinal);
  if (result) return fail(d, result, ordinal, "cuDeviceGet");
  if ((result = d->device_name(facts->name, sizeof facts->name, number))) return fail(d, result, ordinal, "cuDeviceGetName");
  for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
    result = d->device_attribute(wanted[i].value, wanted[i].attribute, number);
    if (result) return fail(d, result, ordinal, "cuDeviceGetAttribute");
  }
  facts->capability = 10 * major + minor;
  return QUERN_OK;
}

quern_status qn_cuda_device_facts(int32_t ordinal, const qn_cuda_facts **facts) {
  const qn_cuda_driver *d;
  const qn_cuda_facts *first = NULL;
  device *of;
  quern_status status = find(ordinal, &d, &of);
  if (status || (*facts = atomic_load(&of->facts))) return status;
  const int kept_errno = errno, kept_cancel = qn_thread_shield();
  qn_cuda_facts *own = calloc(1, sizeof *own);
  status = own ? ask(d, ordinal, own) : qn_status_fail(QUERN_E_MEMORY, "cuda: out of memory");
  if (!status && atomic_compare_exchange_strong(&of->facts, &first, own)) {
    *facts = own;
  } else {
    *facts = first;
    free(own);
  }
  qn_thread_unshield(kept_cancel);
  errno = kept_errno;
  return status;
}
