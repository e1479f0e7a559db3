/* SPDX-License-Identifier: Apache-2.0
 *
 * xla_call.c: see xla_call.h. */
#include "xla/xla_call.h"

#include <stdio.h>
#include <string.h>

#include "types/dtypes.h"
#include "xla/xla_ops.h"

#define MOST_OPERANDS 32
#define MOST_PARAMS 16

/* ---- Errors ---- */

static xla_error *fail(const xla_frame *frame, int32_t code, const char *message) {
  xla_error_args args = {.size = sizeof args, .message = message, .code = code};
  return frame->api->error_create(&args);
}

static xla_error *fail_status(const xla_frame *frame, quern_status status) {
  const int32_t code = status == QUERN_E_NOTFOUND      ? XLA_NOT_FOUND
                       : status == QUERN_E_UNSUPPORTED ? XLA_UNIMPLEMENTED
                       : status == QUERN_E_MEMORY      ? XLA_RESOURCE_EXHAUSTED
                       : status <= QUERN_E_COMPILER    ? XLA_INTERNAL
                                                       : XLA_INVALID_ARGUMENT;
  return fail(frame, code, quern_last_error());
}

/* ---- Attributes ---- */

static const void *attribute(const xla_frame *frame, const char *name, int32_t type) {
  const xla_attributes *all = &frame->attributes;
  const size_t n = strlen(name);
  for (int64_t k = 0; k < all->n; k++)
    if (all->names[k]->n == n && memcmp(all->names[k]->text, name, n) == 0) return all->types[k] == type ? all->items[k] : NULL;
  return NULL;
}

/* A mask of axes with bits that count from the end -> the mask of the same axes, from the start. */
static int64_t mask_from_start(int64_t from_end, int32_t ndim) {
  int64_t mask = 0;
  for (int32_t d = 0; d < ndim; d++) mask |= (from_end >> d & 1) << (ndim - 1 - d);
  return mask;
}

/* Returns the number of params; -1: they are not as xla_call.h says. ndim: of the broadcast shape */
static int32_t read_params(const xla_array *array, int32_t ndim, quern_scalar params[MOST_PARAMS]) {
  if (!array) return 0;
  if (array->dtype != XLA_S64 || array->n % 3 || array->n > 3 * MOST_PARAMS) return -1;
  const int32_t n = (int32_t)(array->n / 3);
  for (int32_t k = 0; k < n; k++) {
    int64_t words[3];
    memcpy(words, (const char *)array->items + (size_t)k * sizeof words, sizeof words);
    params[k].kind = (int32_t)words[0];
    memcpy(&params[k].v, words + 1, sizeof params[k].v);
    if (words[0] == XLA_AXES_FROM_END) params[k] = (quern_scalar){.kind = QUERN_I64, .v.i = mask_from_start(words[1], ndim)};
  }
  return n;
}

/* ---- Operands ---- */

/* -1: an operand is no buffer of a dtype that DLPack has. */
static int read_tensors(const xla_list *list, DLDevice device, DLTensor *tensors, DLTensor **pointers) {
  for (int64_t k = 0; k < list->n; k++) {
    const xla_buffer *buffer = list->items[k];
    const dtype_row *dtype = list->types[k] == XLA_ARG_BUFFER ? dtype_by_xla(buffer->dtype) : NULL;
    if (!dtype) return -1;
    tensors[k] = (DLTensor){.data = buffer->data, .device = device, .ndim = (int32_t)buffer->rank, .dtype = dtype_dlpack(dtype),
                            .shape = buffer->dims};
    pointers[k] = &tensors[k];
  }
  return 0;
}

static int32_t largest_ndim(const xla_list *list) {
  int64_t ndim = 0;
  for (int64_t k = 0; k < list->n; k++) {
    const xla_buffer *buffer = list->items[k];
    ndim = buffer->rank > ndim ? buffer->rank : ndim;
  }
  return ndim < QUERN_MAX_NDIM ? (int32_t)ndim : QUERN_MAX_NDIM; /* the library refuses larger ones */
}

/* ---- A call ---- */

typedef struct job {
  quern_op *op;
  int32_t n_in, n_out;
  DLTensor tensors[MOST_OPERANDS], *pointers[MOST_OPERANDS]; /* inputs, then outputs */
  quern_scalar params[MOST_PARAMS];
  quern_call how;
} job;

static xla_error *read_job(const xla_frame *frame, DLDevice device, job *job) {
  char sentence[200];
  const xla_span *key = attribute(frame, "op", XLA_ATTR_STRING);
  if (!key) return fail(frame, XLA_INVALID_ARGUMENT, "quern: the call has no attribute op");
  quern_status status = xla_ops_get(key->text, key->n, &job->op);
  if (status) return fail_status(frame, status);
  const quern_op_info *info = quern_op_describe(job->op);
  if (frame->in.n != info->n_in || frame->out.n != info->n_out) {
    snprintf(sentence, sizeof sentence, "%.100s: %lld operands and %lld results, expected %d and %d", info->name, (long long)frame->in.n,
             (long long)frame->out.n, (int)info->n_in, (int)info->n_out);
    return fail(frame, XLA_INVALID_ARGUMENT, sentence);
  }
  job->n_in = info->n_in;
  job->n_out = info->n_out;
  const int32_t n_params = read_params(attribute(frame, "params", XLA_ATTR_ARRAY), largest_ndim(&frame->in), job->params);
  if (n_params < 0 || read_tensors(&frame->in, device, job->tensors, job->pointers) ||
      read_tensors(&frame->out, device, job->tensors + job->n_in, job->pointers + job->n_in)) {
    snprintf(sentence, sizeof sentence, "%.100s: an operand or the attribute params is of an unknown kind", info->name);
    return fail(frame, XLA_INVALID_ARGUMENT, sentence);
  }
  job->how = (quern_call){.size = sizeof job->how, .params = n_params ? job->params : NULL, .n_params = n_params};
  return NULL;
}

static xla_error *run_job(const xla_frame *frame, const job *job) {
  const quern_status status =
      quern_op_call(job->op, job->n_in, job->pointers, job->n_out, job->pointers + job->n_in, &job->how);
  return status ? fail_status(frame, status) : NULL;
}

/* XLA asks what the handler is before it takes it. */
static int tell_metadata(const xla_frame *frame) {
  const xla_extension *extension = frame->extension;
  if (!extension || extension->type != XLA_METADATA) return 0;
  xla_metadata *metadata = ((const xla_metadata_extension *)(const void *)extension)->metadata;
  metadata->version = (xla_version){.size = sizeof metadata->version, .major = XLA_MAJOR, .minor = XLA_MINOR};
  metadata->traits = 0;
  return 1;
}

xla_error *xla_call_cpu(xla_frame *frame) {
  job job;
  if (tell_metadata(frame) || frame->stage != XLA_EXECUTE) return NULL;
  xla_error *error = read_job(frame, (DLDevice){kDLCPU, 0}, &job);
  return error ? error : run_job(frame, &job);
}

/* ---- CUDA ---- */

/* The frame's stream and device. */
static xla_error *find_device(const xla_frame *frame, void **stream, DLDevice *device) {
  const xla_api *api = frame->api;
  xla_stream_args of_stream = {.size = sizeof of_stream, .execution = frame->execution};
  xla_ordinal_args of_device = {.size = sizeof of_device, .execution = frame->execution};
  xla_error *error = api->stream_get(&of_stream);
  if (!error && api->size >= offsetof(xla_api, ordinal_get) + sizeof api->ordinal_get) error = api->ordinal_get(&of_device);
  *stream = of_stream.stream;
  *device = (DLDevice){kDLCUDA, of_device.ordinal};
  return error;
}

static void drop_error(const xla_frame *frame, xla_error *error) {
  xla_error_destroy_args args = {.size = sizeof args, .error = error};
  frame->api->error_destroy(&args);
}

/* Memory that makes a reduction quicker; without it the call works, too. */
static void *allocate(const xla_frame *frame, size_t bytes) {
  xla_allocate_args args = {.size = sizeof args, .execution = frame->execution, .bytes = bytes, .alignment = 256};
  xla_error *error = frame->api->device_allocate(&args);
  if (error) drop_error(frame, error);
  return error ? NULL : args.data;
}

static void release(const xla_frame *frame, void *data, size_t bytes) {
  xla_free_args args = {.size = sizeof args, .execution = frame->execution, .bytes = bytes, .data = data};
  xla_error *error = frame->api->device_free(&args); /* in the stream's order */
  if (error) drop_error(frame, error);
}

xla_error *xla_call_cuda(xla_frame *frame) {
  job job;
  DLDevice device;
  void *stream;
  size_t bytes = 0;
  if (tell_metadata(frame) || frame->stage != XLA_EXECUTE) return NULL;
  xla_error *error = find_device(frame, &stream, &device);
  if (!error) error = read_job(frame, device, &job);
  if (error) return error;
  job.how.stream = stream;
  DLTensor **out = job.pointers + job.n_in;
  if (quern_op_workspace(job.op, job.n_in, job.pointers, job.n_out, out, &job.how, &bytes) == QUERN_OK && bytes &&
      (job.how.workspace = allocate(frame, bytes)))
    job.how.workspace_bytes = bytes;
  error = run_job(frame, &job);
  if (job.how.workspace) release(frame, job.how.workspace, bytes);
  return error;
}
