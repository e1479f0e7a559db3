/* SPDX-License-Identifier: Apache-2.0
 *
 * tvm_ffi_call.c: a call by tvm-ffi's convention: reads the arguments, calls the op, gives what it has allocated. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/tvm_ffi.h"
#include "abi/tvm_ffi_library.h"
#include "abi/tvm_ffi_memory.h"
#include "abi/tvm_ffi_number.h"

#define TVM_MAX_TENSORS 32 /* inputs or outputs of an op */
#define TVM_MAX_PARAMS 32

typedef struct qn_tvm_arguments {
  const quern_op_info *info;
  const qn_tvm_any *args;
  int32_t n, n_read;
  DLTensor *in[TVM_MAX_TENSORS], *out[TVM_MAX_TENSORS];
  quern_scalar params[TVM_MAX_PARAMS];
  int32_t n_params;
  int8_t has_outputs, has_dtypes;
  DLDataType dtypes[TVM_MAX_TENSORS]; /* of outputs to be made, if has_dtypes; bits 0: not given */
} qn_tvm_arguments;

static const char *tvm_kind_of(quern_status status) {
  switch (status) {
    case QUERN_E_DTYPE: return "TypeError";
    case QUERN_E_MEMORY: return "MemoryError";
    case QUERN_E_UNSUPPORTED: return "NotImplementedError";
    case QUERN_E_COMPILER:
    case QUERN_E_DRIVER:
    case QUERN_E_CAPTURING:
    case QUERN_E_IO: return "RuntimeError";
    default: return "ValueError";
  }
}

static const char *tvm_type_text(const qn_tvm_any *arg) {
  switch (arg->type_index) {
    case QN_TVM_NONE: return "None";
    case QN_TVM_INT: return "an int";
    case QN_TVM_BOOL: return "a bool";
    case QN_TVM_FLOAT: return "a float";
    case QN_TVM_DTYPE: return "a dtype";
    case QN_TVM_DEVICE: return "a device";
    case QN_TVM_DLTENSOR:
    case QN_TVM_TENSOR: return "a tensor that is NULL";
    case QN_TVM_RAW_STRING:
    case QN_TVM_SMALL_STRING:
    case QN_TVM_STRING: return "a string";
    case QN_TVM_BYTE_ARRAY:
    case QN_TVM_SMALL_BYTES:
    case QN_TVM_BYTES: return "bytes";
    case QN_TVM_ARRAY:
    case QN_TVM_LIST:
    case QN_TVM_SHAPE: return "a sequence";
    default: return "a value of another type";
  }
}

/* The tensor that an argument is, or NULL. It is borrowed. */
static DLTensor *tvm_tensor_of(const qn_tvm_any *arg) {
  qn_tvm_object *object = NULL;
  if (arg->type_index == QN_TVM_DLTENSOR) return arg->v.pointer;
  if (arg->type_index == QN_TVM_TENSOR) object = arg->v.object;
  if (arg->type_index == QN_TVM_RVALUE && arg->v.pointer) object = *(qn_tvm_object **)arg->v.pointer; /* stays the caller's */
  return object && object->type_index == QN_TVM_TENSOR ? (DLTensor *)(object + 1) : NULL;
}

static int is_tvm_number(const qn_tvm_any *arg) {
  return arg->type_index == QN_TVM_INT || arg->type_index == QN_TVM_BOOL || arg->type_index == QN_TVM_FLOAT;
}

/* "gelu(x, [out])" */
static const char *tvm_signature(const quern_op_info *info, char *text, size_t size) {
  size_t n = (size_t)snprintf(text, size, "%.64s(", info->name);
  for (int32_t k = 0; k < info->n_in + info->n_params + info->n_out && n < size; k++) {
    const int32_t p = k - info->n_in, is_param = p >= 0 && p < info->n_params;
    const char *const name = is_param ? info->params[p].name : info->args[p < 0 ? k : k - info->n_params].name;
    n += (size_t)snprintf(text + n, size - n, p < 0 ? "%s%.64s" : "%s[%.64s]", k ? ", " : "", name);
  }
  if (n < size) snprintf(text + n, size - n, ")");
  return text;
}

/* The rest cannot be the outputs: too many or too few arguments, or one that is no number where a parameter could be. */
static int fail_tvm_count(const qn_tvm_arguments *call) {
  char text[512];
  const qn_tvm_any *const next = call->n_read > 0 ? &call->args[call->n_read] : NULL;
  if (next && call->n_params < call->info->n_params && !tvm_tensor_of(next))
    return qn_tvm_fail("TypeError", call->info, "argument %d: %s, expected %s", (int)call->n_read + 1, tvm_type_text(next),
                       tvm_signature(call->info, text, sizeof text));
  return qn_tvm_fail("TypeError", call->info, "%d argument%s, expected %s", (int)call->n, call->n == 1 ? "" : "s",
                     tvm_signature(call->info, text, sizeof text));
}

static int read_tvm_inputs(qn_tvm_arguments *call) {
  const quern_op_info *const info = call->info;
  for (int32_t k = 0; k < info->n_in; k++) {
    const qn_tvm_any *const arg = &call->args[call->n_read++];
    call->in[k] = tvm_tensor_of(arg);
    if (!call->in[k] && !is_tvm_number(arg))
      return qn_tvm_fail("TypeError", info, "input %d (%s): %s, expected a tensor or a number", (int)k + 1, info->args[k].name,
                         tvm_type_text(arg));
  }
  return 0;
}

static int is_tvm_sequence(const qn_tvm_any *arg) {
  const int32_t type = arg->type_index;
  const int is_one = type == QN_TVM_ARRAY || type == QN_TVM_LIST || type == QN_TVM_SHAPE;
  return is_one && arg->v.object && arg->v.object->type_index == type;
}

/* The parameter axes, a bit for each, of a sequence of ints; negative ones count from the last dimension of the inputs. */
static int read_tvm_axes(const qn_tvm_arguments *call, const qn_tvm_any *sequence, quern_scalar *param) {
  const qn_tvm_items *const items = (const qn_tvm_items *)(sequence->v.object + 1);
  int64_t bits = 0;
  int32_t ndim = 0;
  for (int32_t k = 0; k < call->info->n_in; k++)
    if (call->in[k] && call->in[k]->ndim > ndim) ndim = call->in[k]->ndim;
  for (int64_t k = 0; k < items->n; k++) {
    const qn_tvm_any *const item = (const qn_tvm_any *)items->data + k;
    const int is_shape = sequence->type_index == QN_TVM_SHAPE;
    if (!is_shape && item->type_index != QN_TVM_INT)
      return qn_tvm_fail("TypeError", call->info, "axes: %s, expected ints", tvm_type_text(item));
    const int64_t axis = is_shape ? ((const int64_t *)items->data)[k] : item->v.i, at = axis < 0 ? axis + ndim : axis;
    if (at < 0 || at >= ndim || at >= QUERN_MAX_NDIM)
      return qn_tvm_fail("ValueError", call->info, "axes: %lld is out of bounds for %d dimensions", (long long)axis, (int)ndim);
    if (bits >> at & 1) return qn_tvm_fail("ValueError", call->info, "axes: %lld is there twice", (long long)axis);
    bits |= (int64_t)1 << at;
  }
  *param = quern_scalar_i64(bits);
  return 0;
}

/* Numbers and None after the inputs, as many as there are parameters; of axes also sequences. */
static int read_tvm_params(qn_tvm_arguments *call) {
  for (; call->n_read < call->n && call->n_params < call->info->n_params; call->n_read++, call->n_params++) {
    const qn_tvm_any *const arg = &call->args[call->n_read];
    const quern_param_info *const info = &call->info->params[call->n_params];
    quern_scalar *const param = &call->params[call->n_params];
    *param = info->value;
    if (arg->type_index == QN_TVM_FLOAT) {
      *param = quern_scalar_f64(arg->v.f);
    } else if (is_tvm_number(arg)) {
      *param = quern_scalar_i64(arg->type_index == QN_TVM_BOOL ? arg->v.i != 0 : arg->v.i);
    } else if (is_tvm_sequence(arg) && qn_tvm_is_axes(call->info, call->n_params)) {
      if (read_tvm_axes(call, arg, param)) return -1;
    } else if (arg->type_index != QN_TVM_NONE) {
      return 0;
    }
  }
  return 0;
}

static int read_tvm_outputs(qn_tvm_arguments *call) {
  const quern_op_info *const info = call->info;
  const int32_t n = call->n - call->n_read;
  int32_t n_tensors = 0;
  if (n != 0 && n != info->n_out) return fail_tvm_count(call);
  for (int32_t k = 0; k < n; k++) {
    const qn_tvm_any *const arg = &call->args[call->n_read + k];
    call->out[k] = tvm_tensor_of(arg);
    if (call->out[k]) {
      n_tensors++;
      continue;
    }
    call->dtypes[k] = arg->type_index == QN_TVM_DTYPE ? arg->v.dtype : (DLDataType){0};
    call->has_dtypes |= arg->type_index == QN_TVM_DTYPE;
    if (arg->type_index != QN_TVM_DTYPE && arg->type_index != QN_TVM_NONE)
      return qn_tvm_fail("TypeError", info, "output %d (%s): %s, expected a tensor", (int)k + 1, info->args[info->n_in + k].name,
                         tvm_type_text(arg));
  }
  if (n_tensors && n_tensors != info->n_out) return qn_tvm_fail("TypeError", info, "all outputs are tensors, or none is");
  call->has_outputs = n_tensors > 0;
  return 0;
}

/* The current stream of the device that the operands are on. NULL: its default stream, or there is no device. */
static void *tvm_stream_of(const qn_tvm_arguments *call) {
  const int32_t n_in = call->info->n_in, n = n_in + (call->has_outputs ? call->info->n_out : 0);
  void *stream = NULL;
  for (int32_t k = 0; k < n && !stream; k++) {
    const DLDevice device = k < n_in ? call->in[k]->device : call->out[k - n_in]->device;
    if (device.device_type == kDLCPU) continue;
    qn_tvm_env_get_stream *const get_stream = qn_tvm_find_env_get_stream();
    stream = get_stream ? get_stream((int32_t)device.device_type, device.device_id) : NULL;
  }
  return stream;
}

static void release_tvm_tensors(const qn_tvm_any *tensors, int32_t n) {
  qn_tvm_object_release *const release = qn_tvm_find_object_release();
  for (int32_t k = 0; release && k < n; k++) release(tensors[k].v.object);
}

/* Several tensors are given as an ffi.Array. Takes them over. */
static int give_tvm_array(const quern_op_info *info, qn_tvm_any *tensors, qn_tvm_any *result) {
  static const char name[] = "ffi.Array";
  qn_tvm_function_get_global *const get_global = qn_tvm_find_function_get_global();
  qn_tvm_function_call *const call = qn_tvm_find_function_call();
  void *array = NULL;
  int failed = !get_global || !call || get_global(&(qn_tvm_bytes){name, sizeof name - 1}, &array) || !array;
  if (failed) {
    failed = qn_tvm_fail("RuntimeError", info, "libtvm_ffi has no %s, which several results are returned in", name);
  } else {
    memset(result, 0, sizeof *result); /* callees are given None */
    failed = call(array, tensors, info->n_out, result);
    release_tvm_tensors(&(qn_tvm_any){.v.pointer = array}, 1);
  }
  release_tvm_tensors(tensors, info->n_out);
  return failed;
}

/* Makes tvm-ffi's tensors of managed ones, which are taken over. */
static int give_tvm_tensors(const quern_op_info *info, struct DLManagedTensorVersioned **managed,
                            qn_tvm_tensor_from_dlpack *from_dlpack, qn_tvm_any *result) {
  qn_tvm_any tensors[TVM_MAX_TENSORS];
  int32_t n = 0;
  memset(tensors, 0, sizeof tensors);
  for (; n < info->n_out; n++) {
    tensors[n].type_index = QN_TVM_TENSOR;
    if (from_dlpack(managed[n], 0, 0, &tensors[n].v.pointer)) break;
  }
  if (n == info->n_out) return n == 1 ? (*result = tensors[0], 0) : give_tvm_array(info, tensors, result);
  release_tvm_tensors(tensors, n);
  for (; n < info->n_out; n++)
    if (managed[n]->deleter) managed[n]->deleter(managed[n]);
  return -1;
}

static int call_tvm_alloc(quern_op *op, const qn_tvm_arguments *call, const quern_call *options, qn_tvm_any *result) {
  const quern_op_info *const info = call->info;
  qn_tvm_env_get_allocator *const get_allocator = qn_tvm_find_env_get_allocator();
  qn_tvm_tensor_from_dlpack *const from_dlpack = qn_tvm_find_tensor_from_dlpack();
  quern_allocator allocator = get_allocator ? get_allocator() : NULL;
  struct DLManagedTensorVersioned *managed[TVM_MAX_TENSORS];
  if (!result || !from_dlpack)
    return qn_tvm_fail("RuntimeError", info, "no libtvm_ffi is loaded, which makes tensors; pass the outputs");
  if (info->n_in == 0)
    return qn_tvm_fail("TypeError", info, "its output's shape and dtype are the caller's choice: pass the output");
  if (!allocator) allocator = qn_tvm_alloc;
  quern_shape *shapes = call->has_dtypes ? calloc((size_t)info->n_out + 1, sizeof *shapes) : NULL; /* too large for the stack */
  if (call->has_dtypes && !shapes) return qn_tvm_fail("MemoryError", info, "out of memory for its outputs' shapes");
  for (int32_t k = 0; shapes && k < info->n_out; k++) shapes[k] = (quern_shape){.size = sizeof *shapes, .dtype = call->dtypes[k]};
  const quern_status status = quern_op_call_alloc(op, info->n_in, call->in, info->n_out, shapes, managed, allocator, options);
  free(shapes);
  return status ? qn_tvm_raise(tvm_kind_of(status)) : give_tvm_tensors(info, managed, from_dlpack, result);
}

int qn_tvm_call(quern_op *op, const qn_tvm_any *args, int32_t n, qn_tvm_any *result) {
  qn_tvm_number numbers[TVM_MAX_TENSORS];
  qn_tvm_arguments call; /* (not set to 0 as a whole, which would take longer than a small call) */
  if (!op) return qn_tvm_raise("MemoryError"); /* for the process-wide context */
  call.info = quern_op_describe(op);
  call.args = args;
  call.n = n;
  call.n_read = call.n_params = 0;
  call.has_dtypes = 0;
  if (n < call.info->n_in || (n > 0 && !args)) return fail_tvm_count(&call);
  if (call.info->n_in > TVM_MAX_TENSORS || call.info->n_out > TVM_MAX_TENSORS || call.info->n_params > TVM_MAX_PARAMS)
    return qn_tvm_fail("NotImplementedError", call.info, "an op of more than %d operands or %d parameters", TVM_MAX_TENSORS,
                       TVM_MAX_PARAMS);
  if (read_tvm_inputs(&call) || read_tvm_params(&call)) return -1;
  if (read_tvm_outputs(&call) || qn_tvm_numbers(call.info, args, call.in, numbers)) return -1;
  const quern_call options = {
      .size = sizeof options, .params = call.params, .n_params = call.n_params, .stream = tvm_stream_of(&call)};
  if (!call.has_outputs) return call_tvm_alloc(op, &call, &options, result);
  const quern_status status = quern_op_call(op, call.info->n_in, call.in, call.info->n_out, call.out, &options);
  if (status) return qn_tvm_raise(tvm_kind_of(status));
  if (result) memset(result, 0, sizeof *result); /* None */
  return 0;
}
