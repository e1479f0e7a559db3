/* SPDX-License-Identifier: Apache-2.0
 *
 * call.c: see call.h. */
#include "call/call.h"

#include <string.h>

#include "base/errors.h"
#include "call/call_state.h"
#include "operand/cast.h"
#include "operand/result.h"

/* Calls on at least this many items release the GIL: releasing and taking it costs about as much as computing that
 * many. */
#define MANY_ITEMS 2048

/* ---- Operands ---- */

void *call_make_room(void *room, int32_t room_for, int32_t n, size_t size) {
  if (n <= room_for) return room;
  void *heap = PyMem_Malloc((size_t)n * size);
  return heap ? heap : (void *)PyErr_NoMemory();
}

int call_begin(call *call, op_object *op, arguments *given) {
  call->op = op;
  call->info = op->info;
  call->given = given;
  call->n_taken = 0;
  call->like = NULL;
  call->how = (quern_call){.size = sizeof call->how, .params = given->n_params ? given->params : NULL,
                           .n_params = given->n_params, .stream = given->stream, .out_flags = call->out_flags};
  call->operands = call_make_room(call->room, ROOM_OPERANDS, n_operands(call), sizeof *call->operands);
  return call->operands ? 0 : -1;
}

void call_end(call *call) {
  for (int32_t k = 0; k < call->n_taken; k++)
    if (!is_made(call, k)) operand_release(&call->operands[k]);
  if (call->operands != call->room) PyMem_Free(call->operands);
}

static int hold_all(call *call) {
  for (int32_t k = 0; k < call->n_taken; k++)
    if (!is_made(call, k) && operand_hold(&call->operands[k])) return -1;
  return 0;
}

int call_hold(call *call) {
  if (hold_all(call)) return -1;
  for (int32_t k = 0; k < n_operands(call); k++)
    if (call->tensors[k]) call->tensors[k] = call->operands[k].tensor;
  return 0;
}

int call_take(call *call) {
  for (int32_t k = 0; k < n_operands(call); k++) {
    PyObject *object = k < call->info->n_in ? call->given->in[k] : call->given->out[k - call->info->n_in];
    call->n_taken = k + 1;
    const int failed = object ? operand_take(object, call->info, k, call->how.stream, &call->operands[k]) : 0;
    if (failed) {
      call->given->is_foreign = failed > 0;
      return -1;
    }
    if (object && !call->like && call->operands[k].kind != OPERAND_NUMBER) call->like = &call->operands[k];
  }
  return 0;
}

/* If no stream is given, uses the stream of the first producer that has one. */
static int find_stream(call *call) {
  for (int32_t k = 0; k < n_operands(call); k++) {
    const operand *operand = &call->operands[k];
    if (is_made(call, k) || operand->kind != OPERAND_EXCHANGE || operand->doubt == OPERAND_REFUSED) continue;
    DLDevice device = operand->tensor->device;
    if (device.device_type == kDLCPU) continue;
    return operand->api->current_work_stream(device.device_type, device.device_id, &call->how.stream) ? -1 : 0;
  }
  return 0;
}

static __attribute__((noinline)) int settle_all(call *call) {
  if ((!call->given->has_stream && find_stream(call)) || hold_all(call)) return -1;
  for (int32_t k = 0; k < n_operands(call); k++)
    if (!is_made(call, k) && operand_settle(&call->operands[k], call->how.stream)) return -1;
  return 0;
}

/* Refuses dtype if all outputs are given. */
static int check_dtype(const call *call) {
  char wanted[DTYPE_CHARS], found[DTYPE_CHARS];
  for (int32_t k = call->info->n_in; k < n_operands(call); k++) {
    const DLTensor *tensor = call->tensors[k];
    if (dtype_of(tensor->dtype) != call->given->dtype)
      return operand_fail(&call->operands[k], PyExc_TypeError, "dtype %s, which dtype=%s contradicts; give either out or dtype",
                          dtype_text(tensor->dtype, found), dtype_text(dtype_dlpack(call->given->dtype), wanted));
  }
  return 0;
}

/* The number of dimensions of the inputs' broadcast shape. */
static int32_t broadcast_ndim(const call *call) {
  int32_t ndim = 0;
  for (int32_t k = 0; k < call->info->n_in; k++) ndim = call->tensors[k]->ndim > ndim ? call->tensors[k]->ndim : ndim;
  return ndim;
}

/* Refuses axes of a scan that are not one axis. */
static int refuse_scan(const call *call, int32_t ndim) {
  PyErr_Format(PyExc_ValueError, "%s: axis: it runs along one axis: give an int from %d to %d%s", call->info->name, (int)-ndim, (int)ndim - 1,
               call->given->axis.kind == AXIS_ALL ? ", or reshape(x, -1) for all elements in order" : "");
  return -1;
}

/* Sets the parameter of a reducing op's axes. Those that are not given are all axes, the library's default, if the op has
 * keepdims or is the derivative of such an op, else the last one. */
static int set_axes(call *call) {
  arguments *given = call->given;
  const int32_t ndim = broadcast_ndim(call), k = call->op->axes;
  int64_t mask;
  if (given->axis.kind == AXIS_DEFAULT) {
    if (call->op->reduces_all || ndim == 0) return 0;
    mask = INT64_C(1) << (ndim - 1);
  } else if (axes_mask(&given->axis, call->info->name, ndim, &mask)) {
    return -1;
  }
  if (call->op->scans && ndim && __builtin_popcountll((unsigned long long)mask) != 1) return refuse_scan(call, ndim);
  for (; given->n_params <= k; given->n_params++) given->params[given->n_params] = call->info->params[given->n_params].value;
  given->params[k] = (quern_scalar){.kind = QUERN_I64, .v.i = mask};
  call->how.params = given->params;
  call->how.n_params = given->n_params;
  return 0;
}

/* All inputs are numbers. Alone they are converted as foreign objects are; beside outputs they have no dtype. */
static int refuse_numbers(call *call) {
  for (int32_t k = call->info->n_in; k < n_operands(call); k++)
    if (!is_made(call, k))
      return operand_fail(call->operands, PyExc_TypeError, "all inputs are numbers, which have no dtype of their own; give one of "
                          "them as a tensor, quern.asarray(x, dtype=...)");
  call->given->is_foreign = 1;
  return -1;
}

int call_read(call *call) {
  int is_settled = 1, n_numbers = 0;
  for (int32_t k = 0; k < n_operands(call); k++) {
    operand *operand = &call->operands[k];
    call->tensors[k] = NULL;
    if (is_made(call, k)) continue;
    if (operand_read(operand)) return -1;
    if (operand->kind == OPERAND_NUMBER) {
      n_numbers++;
      continue;
    }
    call->tensors[k] = operand->tensor;
    is_settled &= operand->doubt == OPERAND_SURE && operand->tensor->device.device_type == kDLCPU;
  }
  if (!is_settled && settle_all(call)) return -1;
  if (n_numbers && n_numbers == call->info->n_in) return refuse_numbers(call);
  if (n_numbers && operand_numbers(call->operands, call->info->n_in, &call->op->numbers)) return -1;
  if (!is_settled)
    for (int32_t k = 0; k < n_operands(call); k++) call->tensors[k] = is_made(call, k) ? NULL : call->operands[k].tensor;
  for (int32_t k = 0; n_numbers && k < call->info->n_in; k++) call->tensors[k] = call->operands[k].tensor;
  if (call->op->axes >= 0 && set_axes(call)) return -1;
  return call->given->dtype && !call->given->n_made ? check_dtype(call) : 0;
}

/* Whether releasing the GIL is not worth while: few items, in the CPU's memory. Outputs may be missing. */
static int is_small(const call *call) {
  for (int32_t k = 0; k < n_operands(call); k++) {
    const DLTensor *tensor = call->tensors[k];
    int64_t n = 1;
    if (!tensor) continue;
    if (tensor->device.device_type != kDLCPU) return 0;
    for (int32_t d = 0; d < tensor->ndim; d++)
      if (__builtin_mul_overflow(n, tensor->shape[d], &n) || n >= MANY_ITEMS) return 0;
  }
  return 1;
}

/* ---- The shapes of results ---- */

/* Whether only the dtype of a result is missing, that is, with any dtype the shapes are found. Then sets an exception. */
static int wants_dtype(call *call, quern_status status, quern_shape *shapes) {
  const quern_op_info *info = call->info;
  if (status != QUERN_E_DTYPE || call->given->dtype || info->n_out != 1 || info->n_in == 0) return 0;
  shapes->dtype = call->tensors[0]->dtype;
  if (quern_op_infer(call->op->op, info->n_in, call->tensors, 1, shapes)) return 0;
  PyErr_Format(PyExc_TypeError, "%s: dtype or out is wanted: it can give any dtype", info->name);
  return 1;
}

/* Asks the library for the shapes, which depend on parameters, or on values of the inputs: these are read then. The operands are
 * held. */
static __attribute__((noinline)) quern_status measure(call *call, quern_shape *shapes) {
  const quern_op_info *info = call->info;
  const int may_last = info->op_class == QUERN_CLASS_DYNAMIC && (!is_small(call) || call->op->may_compile);
  PyThreadState *thread = may_last ? PyEval_SaveThread() : NULL;
  quern_status status = quern_op_measure(call->op->op, info->n_in, call->tensors, info->n_out, shapes, &call->how);
  if (thread) PyEval_RestoreThread(thread);
  return status;
}

/* The same for any op. shapes: with dtypes that are the caller's choice. */
static quern_status ask_shapes(call *call, quern_shape *shapes) {
  const quern_op_info *info = call->info;
  if (info->op_class == QUERN_CLASS_DYNAMIC || info->op_class == QUERN_CLASS_REDUCTION) return measure(call, shapes);
  return quern_op_infer(call->op->op, info->n_in, call->tensors, info->n_out, shapes);
}

int call_find_shapes(call *call, quern_shape *shapes) {
  const quern_op_info *info = call->info;
  DLTensor **out = call->tensors + info->n_in;
  const dtype_row *dtype = call->given->dtype;
  for (int32_t k = 0; k < info->n_out; k++) {
    shapes[k].size = sizeof shapes[k];
    shapes[k].dtype = out[k] ? out[k]->dtype : dtype ? dtype_dlpack(dtype) : (DLDataType){0};
  }
  quern_status status = ask_shapes(call, shapes);
  if (status) {
    if (!wants_dtype(call, status, shapes)) raise_status(status);
    return -1;
  }
  for (int32_t k = 0; k < info->n_out; k++)
    if (dtype) shapes[k].dtype = dtype_dlpack(dtype);
  return 0;
}

/* ---- Reductions with dtype= ---- */

/* Whether a list of names separated by blanks has this one. */
static int has_name(const char *names, const char *name) {
  const size_t n = strlen(name);
  for (const char *found = names; (found = strstr(found, name)); found += n)
    if ((found == names || found[-1] == ' ') && (found[n] == ' ' || !found[n])) return 1;
  return 0;
}

/* Whether a result has another dtype than the wanted one. Asked of results with a dtype that depends on the inputs. */
static int gives_other(const call *call, const quern_shape *shapes) {
  for (int32_t k = 0; k < call->info->n_out; k++)
    if (strchr(call->info->args[call->info->n_in + k].dtypes, ' ') && dtype_of(shapes[k].dtype) != call->given->dtype) return 1;
  return 0;
}

static int cast_each(call *call, int is_imagined) {
  const dtype_row *dtype = call->given->dtype;
  const int small = is_small(call);
  for (int32_t k = 0; k < call->info->n_in; k++) {
    operand *operand = &call->operands[k];
    if (operand->kind == OPERAND_NUMBER || dtype_of(operand->tensor->dtype) == dtype) continue;
    if (!has_name(call->info->args[k].dtypes, dtype->name)) continue; /* an index, a condition */
    if (is_imagined ? operand_imagine_cast(operand, dtype) : operand_cast(operand, dtype, call->how.stream, small)) return -1;
    call->tensors[k] = operand->tensor;
  }
  return 0;
}

/* The array API's dtype=: values are converted before they are added. Where the op gives that dtype already nothing is to be
 * done. An op that cannot be called is refused later. */
__attribute__((noinline)) int call_cast_inputs(call *call, int is_imagined) {
  quern_shape room[ROOM_SHAPES], *shapes = call_make_room(room, ROOM_SHAPES, call->info->n_out, sizeof *shapes);
  int failed = !shapes || call_hold(call);
  for (int32_t k = 0; !failed && k < call->info->n_out; k++) {
    shapes[k].size = sizeof shapes[k];
    shapes[k].dtype = (DLDataType){0};
  }
  if (!failed && ask_shapes(call, shapes) == QUERN_OK && gives_other(call, shapes)) failed = cast_each(call, is_imagined);
  if (shapes != room) PyMem_Free(shapes);
  return failed ? -1 : 0;
}

int call_wants_cast(const call *call) { return call->given->dtype && call->op->axes >= 0; }

/* ---- New results ---- */

static void drop_results(call *call, int32_t end) {
  for (int32_t k = call->info->n_in; k < end; k++)
    if (is_made(call, k)) operand_drop(&call->operands[k]);
}

static int make_each(call *call, const quern_shape *shapes) {
  for (int32_t k = call->info->n_in; k < n_operands(call); k++) {
    operand *operand = &call->operands[k];
    if (!is_made(call, k)) continue;
    operand->info = call->info;
    operand->index = k;
    if (operand_result(call->like, &shapes[k - call->info->n_in], operand)) {
      drop_results(call, k);
      return -1;
    }
    call->tensors[k] = operand->tensor;
  }
  return 0;
}

static __attribute__((noinline)) int make_results(call *call) {
  if (call->info->n_in == 0) {
    PyErr_Format(PyExc_TypeError, "%s: out is wanted: it has no inputs that a result could be like", call->info->name);
    return -1;
  }
  quern_shape room[ROOM_SHAPES], *shapes = call_make_room(room, ROOM_SHAPES, call->info->n_out, sizeof *shapes);
  int failed = !shapes || call_hold(call) || call_find_shapes(call, shapes) || make_each(call, shapes);
  if (shapes != room) PyMem_Free(shapes);
  return failed ? -1 : 0;
}

/* Makes the call's result; takes over the results that were made. NULL: an exception. */
static PyObject *wrap_results(call *call) {
  const arguments *given = call->given;
  int32_t n_in = call->info->n_in, n_out = call->info->n_out, n = 0;
  PyObject *objects[OP_MAX_OPERANDS], *tuple;
  if (!given->n_made) return new_ref(n_out == 1 ? given->out[0] : given->out_given);
  for (; n < n_out; n++) {
    objects[n] = given->out[n] ? new_ref(given->out[n]) : operand_wrap(call->like, &call->operands[n_in + n]);
    if (!objects[n]) break;
  }
  for (int32_t k = n + 1; k < n_out; k++)
    if (!given->out[k]) operand_drop(&call->operands[n_in + k]);
  if (n == 1 && n_out == 1) return objects[0];
  tuple = n == n_out ? PyTuple_New(n_out) : NULL;
  for (int32_t k = 0; k < n; k++)
    if (!tuple || PyTuple_SetItem(tuple, k, objects[k])) Py_DECREF(objects[k]);
  return tuple;
}

/* ---- Running ---- */

static int is_writable(const call *call) {
  for (int32_t k = 0; k < call->info->n_out; k++)
    if (call->out_flags[k] & DLPACK_FLAG_BITMASK_READ_ONLY) return 0;
  return 1;
}

static quern_status run_plan(call *call, quern_plan *plan) {
  void *data[OP_MAX_OPERANDS];
  for (int32_t k = 0; k < n_operands(call); k++) data[k] = (void *)((uintptr_t)call->tensors[k]->data + call->tensors[k]->byte_offset);
  return quern_plan_run(plan, data, data + call->info->n_in, NULL);
}

static quern_status run_op(call *call) {
  const quern_op_info *info = call->info;
  return quern_op_call(call->op->op, info->n_in, call->tensors, info->n_out, call->tensors + info->n_in, &call->how);
}

/* Gives a call that reduces on a device the memory that makes it quicker, from the producer of its inputs, if it is on the stream that the
 * producer works on: this may have the memory back before the kernels have run. 0: there is none, without an exception. */
static int give_workspace(call *call, operand *made) {
  const quern_op_info *info = call->info;
  const operand *like = call->like;
  void *stream = NULL;
  size_t bytes = 0;
  if (info->op_class != QUERN_CLASS_REDUCTION || !like || like->kind != OPERAND_EXCHANGE || !like->api->current_work_stream) return 0;
  const DLDevice device = like->tensor->device;
  if (device.device_type == kDLCPU) return 0;
  if (like->api->current_work_stream(device.device_type, device.device_id, &stream) || stream != call->how.stream ||
      quern_op_workspace(call->op->op, info->n_in, call->tensors, info->n_out, call->tensors + info->n_in, &call->how, &bytes) || !bytes) {
    PyErr_Clear();
    return 0;
  }
  const quern_shape shape = {.size = sizeof shape, .device = device, .dtype = {.code = kDLUInt, .bits = 8, .lanes = 1}, .ndim = 1,
                             .shape = {(int64_t)bytes}, .strides = {1}};
  made->info = info;
  made->index = 0;
  if (operand_result(like, &shape, made)) {
    PyErr_Clear();
    return 0;
  }
  call->how.workspace = (char *)made->tensor->data + made->tensor->byte_offset;
  call->how.workspace_bytes = bytes;
  return 1;
}

/* Runs the plan; NULL: the op. Without the GIL if that is worth while. */
static int run_with(call *call, quern_plan *plan, int small) {
  quern_status status;
  if (small && (plan || !call->op->may_compile)) {
    status = plan ? run_plan(call, plan) : run_op(call);
  } else {
    operand workspace;
    if (call_hold(call)) return -1;
    const int has_workspace = !plan && give_workspace(call, &workspace);
    PyThreadState *thread = PyEval_SaveThread();
    status = plan ? run_plan(call, plan) : run_op(call);
    PyEval_RestoreThread(thread);
    if (has_workspace) operand_drop(&workspace);
  }
  if (status) raise_status(status);
  return status ? -1 : 0;
}

static int run(call *call) {
  const quern_op_info *info = call->info;
  memo *memo = &call->op->memo;
  DLTensor **out = call->tensors + info->n_in;
  for (int32_t k = 0; k < info->n_out; k++) call->out_flags[k] = call->operands[info->n_in + k].flags;
  const int is_known = memo_knows(memo, info->n_in, call->tensors, info->n_out, out, &call->how);
  const int small = is_known ? memo->is_small : is_small(call);
  const int is_kept = is_writable(call) && (is_known || memo_keep(memo, info->n_in, call->tensors, info->n_out, out, &call->how, small));
  quern_plan *plan = is_kept ? memo_begin(memo, call->op->op, info->n_in, call->tensors, info->n_out, out, &call->how) : NULL;
  if (is_kept)
    call->op->last.n = 0;
  else
    memo_note(&call->op->last, info->n_in, call->tensors, info->n_out, out, &call->how);
  const int result = run_with(call, plan, small);
  if (plan) memo_end(memo);
  return result;
}

PyObject *call_run(op_object *op, arguments *given) {
  call call;
  PyObject *result = NULL;
  if (call_begin(&call, op, given)) return NULL;
  if (call_take(&call) == 0 && call_read(&call) == 0 && (!call_wants_cast(&call) || call_cast_inputs(&call, 0) == 0) &&
      (!given->n_made || make_results(&call) == 0)) {
    if (run(&call) == 0)
      result = wrap_results(&call);
    else
      drop_results(&call, n_operands(&call));
  }
  call_end(&call);
  return result;
}
