/* SPDX-License-Identifier: Apache-2.0
 *
 * outputs.c: a call with outputs made by the caller's allocator. See calls.h.
 *
 * The allocator is foreign code. Its error texts are copied, its tensors are checked against the request, and on any failure
 * each tensor is deleted once: also where it leaves by a C++ exception, if this file is compiled with -fexceptions. */
#include "core/call/calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/op/kind.h"
#include "core/tensor/device.h"
#include "core/tensor/tensor.h"

#if defined(__EXCEPTIONS) && defined(__ELF__)
/* What runs clean-ups in frames of C is in libgcc, which only programs that throw have. */
__asm__(".weak __gcc_personality_v0");
#endif

/* What is made for one call: it is given back where the list ends. */
typedef struct output_list {
  quern_shape *shapes; /* NULL: they are the caller's, or on the stack */
  int32_t n;           /* tensors so far */
  struct DLManagedTensorVersioned *managed[QN_MAX_OPERANDS];
} output_list;

/* The allocator's first error report. */
typedef struct output_complaint {
  int is_made;
  char kind[64], message[512];
} output_complaint;

static void set_error(void *error_ctx, const char *kind, const char *message) {
  output_complaint *complaint = error_ctx;
  if (complaint->is_made) return;
  complaint->is_made = 1;
  snprintf(complaint->kind, sizeof complaint->kind, "%s", kind ? kind : "");
  snprintf(complaint->message, sizeof complaint->message, "%s", message ? message : "");
}

/* Keeps the call's error sentence, which a deleter may overwrite. Not inlined, for its stack. */
__attribute__((noinline)) static void end_outputs(output_list *outputs) {
  qn_sentence kept;
  qn_status_keep(&kept);
  for (int32_t k = 0; k < outputs->n; k++)
    if (outputs->managed[k]->deleter) outputs->managed[k]->deleter(outputs->managed[k]);
  qn_status_restore(&kept);
  free(outputs->shapes);
}

/* ---- Shapes ---- */

/* Refuses shapes NULL where the caller must choose: the output's dtype of a cast; also shape and device without inputs. */
static quern_status check_wishes(const quern_op *op, const quern_shape *shapes) {
  const quern_op_info *info = op->info;
  if (!qn_kind_of(op)->chooses_dtype && info->n_in > 0) return QUERN_OK;
  if (shapes) return QUERN_OK;
  return qn_status_fail(QUERN_E_ARGUMENT, "%s: its output's dtype%s is the caller's choice, and shapes is NULL", info->name,
                        info->n_in ? "" : " and shape");
}

/* Checks a shape, which may come from the caller or a registered op. */
static quern_status check_extents(const quern_op_info *info, int32_t k, const quern_shape *wanted) {
  const quern_arg_info *arg = &info->args[info->n_in + k];
  if (wanted->ndim < 0 || wanted->ndim > QUERN_MAX_NDIM)
    return qn_tensor_fail(QUERN_E_ARGUMENT, info->name, arg, k, "its shape has %d dimensions", wanted->ndim);
  for (int32_t d = 0; d < wanted->ndim; d++)
    if (wanted->shape[d] < 0)
      return qn_tensor_fail(QUERN_E_SHAPE, info->name, arg, k, "its shape has a negative extent, %lld",
                            (long long)wanted->shape[d]);
  return QUERN_OK;
}

/* ---- Allocating ---- */

/* Compares the allocator's tensor, of a known DLPack version, with the request. */
static quern_status check_given(const quern_op_info *info, int32_t k, const DLTensor *asked, const DLTensor *given) {
  const quern_arg_info *arg = &info->args[info->n_in + k];
  char device[QN_DEVICE_CHARS], expected[QN_DEVICE_CHARS];
  const DLDataType got = given->dtype, wanted = asked->dtype;
  qn_tensor read = {.ndim = given->ndim, .shape = given->shape};
  if (got.code != wanted.code || got.bits != wanted.bits || got.lanes != wanted.lanes)
    return qn_tensor_fail(QUERN_E_DTYPE, info->name, arg, k,
                          "the allocator gave code %d of %d bits and %d lanes, for code %d of %d bits and %d lanes", got.code,
                          got.bits, got.lanes, wanted.code, wanted.bits, wanted.lanes);
  if (given->device.device_type != asked->device.device_type || given->device.device_id != asked->device.device_id)
    return qn_tensor_fail(QUERN_E_DEVICE, info->name, arg, k, "the allocator gave memory on %s, expected %s",
                          qn_device_text(given->device, device), qn_device_text(asked->device, expected));
  if (given->ndim != asked->ndim || (given->ndim && !given->shape))
    return qn_tensor_fail(QUERN_E_SHAPE, info->name, arg, k, "the allocator gave %d dimensions%s, expected %d", given->ndim,
                          given->shape ? "" : " without extents", asked->ndim);
  return qn_tensor_check_shape(info->name, arg, k, &read, asked->ndim, asked->shape);
}

/* Allocates the next output. order: its dimensions as they are in memory, innermost first; NULL: row-major. */
static quern_status allocate_next(const quern_op_info *info, const quern_shape *wanted, const int32_t *order,
                                  quern_allocator allocate, output_list *outputs) {
  const int32_t k = outputs->n, last = wanted->ndim - 1;
  const quern_arg_info *arg = &info->args[info->n_in + k];
  struct DLManagedTensorVersioned *managed = NULL;
  int64_t shape[QUERN_MAX_NDIM], copy[QUERN_MAX_NDIM]; /* an allocator may write to it */
  output_complaint complaint = {.is_made = 0};
  DLTensor asked = {.device = wanted->device, .ndim = wanted->ndim, .dtype = wanted->dtype, .shape = shape}, prototype = asked;
  prototype.shape = copy;
  for (int32_t d = 0; d <= last; d++) copy[d] = shape[d] = wanted->shape[order ? order[last - d] : d];
  if (allocate(&prototype, &managed, &complaint, set_error) != 0)
    return qn_tensor_fail(QUERN_E_MEMORY, info->name, arg, k, "the allocator failed%s%s%s%s", complaint.kind[0] ? ": " : "",
                          complaint.kind, complaint.message[0] ? ": " : "", complaint.message);
  if (!managed) return qn_tensor_fail(QUERN_E_MEMORY, info->name, arg, k, "the allocator gave no tensor, and no failure");
  for (int32_t j = 0; j < k; j++)
    if (managed == outputs->managed[j])
      return qn_tensor_fail(QUERN_E_OVERLAP, info->name, arg, k, "the allocator gave the tensor of output %d again", j + 1);
  outputs->managed[outputs->n++] = managed;
  if (managed->version.major != DLPACK_MAJOR_VERSION)
    return qn_tensor_fail(QUERN_E_VERSION, info->name, arg, k, "the allocator gave a tensor of DLPack %u.%u, expected %d.x",
                          managed->version.major, managed->version.minor, DLPACK_MAJOR_VERSION);
  return check_given(info, k, &asked, &managed->dl_tensor);
}

/* Puts the dimensions of an allocated tensor into the order of the result. */
static void permute(DLTensor *tensor, const int32_t *order) {
  int64_t shape[QUERN_MAX_NDIM], strides[QUERN_MAX_NDIM];
  for (int32_t d = 0; d < tensor->ndim; d++) shape[d] = tensor->shape[d], strides[d] = tensor->strides[d];
  for (int32_t d = 0, i = tensor->ndim - 1; i >= 0; d++, i--) tensor->shape[order[i]] = shape[d], tensor->strides[order[i]] = strides[d];
}

/* Allocates an output with the layout of its shape, or a row-major one if the allocator's tensors have no strides. */
static quern_status make_next(const quern_op_info *info, const quern_shape *wanted, quern_allocator allocate, output_list *outputs) {
  int32_t room[QUERN_MAX_NDIM];
  quern_status status = check_extents(info, outputs->n, wanted);
  const int32_t *order = status ? NULL : qn_tensor_order_of(wanted, room);
  if (!status) status = allocate_next(info, wanted, order, allocate, outputs);
  if (status || !order) return status;
  struct DLManagedTensorVersioned *managed = outputs->managed[outputs->n - 1];
  if (managed->dl_tensor.strides) return permute(&managed->dl_tensor, order), QUERN_OK;
  outputs->n--;
  if (managed->deleter) managed->deleter(managed);
  return allocate_next(info, wanted, NULL, allocate, outputs);
}

/* Measures and allocates all outputs. */
static quern_status make_measured(const quern_op *op, DLTensor *const *in, quern_shape *shapes, quern_allocator allocate,
                                  const quern_call *call, output_list *outputs) {
  quern_status status = qn_measure(op, in, shapes, call);
  for (int32_t k = 0; k < op->info->n_out && status == QUERN_OK; k++)
    status = make_next(op->info, qn_shape_at(shapes, k), allocate, outputs);
  return status;
}

/* Shapes for a caller that gives none. Not inlined, so that its stack is free when the op runs. */
__attribute__((noinline)) static quern_status make_unasked(const quern_op *op, DLTensor *const *in, quern_allocator allocate,
                                                           const quern_call *call, output_list *outputs) {
  const int32_t n_out = op->info->n_out;
  quern_shape one, *own = &one;
  if (n_out > 1 && !(own = outputs->shapes = malloc((size_t)n_out * sizeof *own)))
    return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory for shapes", op->info->name);
  for (int32_t k = 0; k < n_out; k++) own[k].size = sizeof own[k];
  return make_measured(op, in, own, allocate, call, outputs);
}

/* Runs the call with the flags of the allocated outputs. */
static quern_status call_on(const quern_op *op, DLTensor *const *in, const output_list *outputs, const quern_call *call) {
  DLTensor *tensors[QN_MAX_OPERANDS];
  uint64_t flags[QN_MAX_OPERANDS];
  quern_call own = {.size = sizeof own};
  if (call) own = *call;
  own.out_flags = flags;
  for (int32_t k = 0; k < outputs->n; k++) {
    tensors[k] = &outputs->managed[k]->dl_tensor;
    flags[k] = outputs->managed[k]->flags;
  }
  return qn_dispatch_call(op, in, tensors, &own);
}

quern_status qn_outputs_call(const quern_op *op, DLTensor *const *in, quern_shape *shapes, struct DLManagedTensorVersioned **out,
                             quern_allocator allocate, const quern_call *call) {
  __attribute__((cleanup(end_outputs))) output_list outputs;
  outputs.n = 0, outputs.shapes = NULL;
  quern_status status = check_wishes(op, shapes);
  if (status) return status;
  status = shapes ? make_measured(op, in, shapes, allocate, call, &outputs) : make_unasked(op, in, allocate, call, &outputs);
  if (status == QUERN_OK) status = call_on(op, in, &outputs, call);
  if (status) return status;
  memcpy(out, outputs.managed, (size_t)outputs.n * sizeof out[0]);
  outputs.n = 0; /* they are the caller's */
  return QUERN_OK;
}
