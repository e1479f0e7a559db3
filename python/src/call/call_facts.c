/* SPDX-License-Identifier: Apache-2.0
 *
 * call_facts.c: what is told of a call that is not made: its explanation; its operands, results and parameters. See call.h. */
#include <string.h>

#include "base/errors.h"
#include "call/call.h"
#include "call/call_state.h"

/* ---- Explaining ---- */

/* Outputs that are not given are described as the memory that they would have. */
static int imagine_results(call *call, quern_shape *shapes) {
  if (!call->given->n_made) return 0;
  if (call_find_shapes(call, shapes)) return -1;
  for (int32_t k = call->info->n_in; k < n_operands(call); k++) {
    quern_shape *shape = &shapes[k - call->info->n_in];
    if (!is_made(call, k)) continue;
    call->operands[k].own =
        (DLTensor){.device = shape->device, .ndim = shape->ndim, .dtype = shape->dtype, .shape = shape->shape, .strides = shape->strides};
    call->tensors[k] = &call->operands[k].own;
    call->operands[k].flags = 0;
  }
  return 0;
}

static PyObject *shape_tuple(int32_t ndim, const int64_t *extents) {
  PyObject *shape = PyTuple_New(ndim);
  for (int32_t d = 0; shape && d < ndim; d++) {
    PyObject *extent = PyLong_FromLongLong(extents[d]);
    if (!extent || PyTuple_SetItem(shape, d, extent)) Py_CLEAR(shape);
  }
  return shape;
}

#define LARGEST_TEXT (1 << 20)

/* The library's lines on a call, owned by the caller (PyMem_Free). It may compile, so the GIL is released. NULL: an exception. */
static char *ask_library(op_object *op, DLTensor *const *tensors, const quern_call *how) {
  const quern_op_info *info = op->info;
  for (size_t size = 8192;; size *= 4) {
    char *text = PyMem_Malloc(size);
    if (!text) return (char *)PyErr_NoMemory();
    PyThreadState *thread = PyEval_SaveThread();
    quern_status status = quern_op_explain(op->op, info->n_in, tensors, info->n_out, tensors + info->n_in, how, text, size);
    PyEval_RestoreThread(thread);
    if (status == QUERN_OK || (status == QUERN_E_LIMIT && size >= LARGEST_TEXT)) return text;
    PyMem_Free(text);
    if (status != QUERN_E_LIMIT) return (char *)raise_status(status);
  }
}

/* (name, whether it is an output, dtype, shape) */
static PyObject *operand_facts(const quern_op_info *info, int32_t k, const DLTensor *tensor) {
  char dtype[DTYPE_CHARS];
  PyObject *shape = shape_tuple(tensor->ndim, tensor->shape);
  if (!shape) return NULL;
  return Py_BuildValue("sOsN", info->args[k].name, k < info->n_in ? Py_False : Py_True, dtype_text(tensor->dtype, dtype), shape);
}

/* A quern.Explanation. */
static PyObject *make_explanation(op_object *op, DLTensor *const *tensors, const quern_call *how) {
  const int32_t n = op->info->n_in + op->info->n_out;
  PyObject *operands = PyTuple_New(n), *module = NULL, *made = NULL;
  for (int32_t k = 0; operands && k < n; k++) {
    PyObject *facts = operand_facts(op->info, k, tensors[k]);
    if (!facts || PyTuple_SetItem(operands, k, facts)) Py_CLEAR(operands);
  }
  char *text = operands ? ask_library(op, tensors, how) : NULL;
  if (text) module = PyImport_ImportModule("quern._explain");
  if (module) made = PyObject_CallMethod(module, "Explanation", "sssO", text, op->info->name, op->info->formula, operands);
  Py_XDECREF(module);
  Py_XDECREF(operands);
  PyMem_Free(text);
  return made;
}

static PyObject *explain(call *call, quern_shape *shapes) {
  const quern_op_info *info = call->info;
  if (call_hold(call) || (call_wants_cast(call) && call_cast_inputs(call, 1)) || imagine_results(call, shapes)) return NULL;
  for (int32_t k = 0; k < info->n_out; k++) call->out_flags[k] = call->operands[info->n_in + k].flags;
  return make_explanation(call->op, call->tensors, &call->how);
}

typedef PyObject *teller(call *call, quern_shape *shapes);

static __attribute__((noinline)) PyObject *with_shapes(call *call, teller *tell) {
  quern_shape room[ROOM_SHAPES], *shapes = call_make_room(room, ROOM_SHAPES, call->info->n_out, sizeof *shapes);
  PyObject *told = shapes ? tell(call, shapes) : NULL;
  if (shapes != room) PyMem_Free(shapes);
  return told;
}

/* What is told of a call that is not made. */
static PyObject *describe(op_object *op, arguments *given, teller *tell) {
  call call;
  PyObject *result = NULL;
  if (call_begin(&call, op, given)) return NULL;
  if (call_take(&call) == 0 && call_read(&call) == 0) result = with_shapes(&call, tell);
  call_end(&call);
  return result;
}

PyObject *call_explain(op_object *op, arguments *given) { return describe(op, given, explain); }

PyObject *call_explain_last(op_object *op) {
  DLTensor tensors[OP_MAX_OPERANDS], *pointers[OP_MAX_OPERANDS];
  quern_scalar params[OP_MAX_PARAMS];
  int64_t room[MEMO_WORDS];
  const int32_t n = op->info->n_in + op->info->n_out, n_params = memo_call(&op->last, &op->memo, n, tensors, room, params);
  const quern_call how = {.size = sizeof how, .params = n_params > 0 ? params : NULL, .n_params = n_params > 0 ? n_params : 0};
  if (n_params < 0 || op->info->op_class == QUERN_CLASS_DYNAMIC) return new_ref(Py_None); /* those read values */
  for (int32_t k = 0; k < n; k++) pointers[k] = &tensors[k];
  PyObject *made = make_explanation(op, pointers, &how);
  if (made || !clear_refusal()) return made;
  return new_ref(Py_None);
}

/* ---- Inferring ---- */

/* (dtype, shape, of a number its item as bytes, else None) */
static PyObject *tensor_facts(const DLTensor *tensor, int is_number) {
  const dtype_row *row = dtype_of(tensor->dtype);
  PyObject *item = is_number ? PyBytes_FromStringAndSize(tensor->data, row->bits / 8) : new_ref(Py_None);
  return Py_BuildValue("NNN", dtype_object(row), shape_tuple(tensor->ndim, tensor->shape), item);
}

static PyObject *list_facts(const call *call, int32_t begin, int32_t end) {
  PyObject *facts = PyTuple_New(end - begin);
  for (int32_t k = begin; facts && k < end; k++) {
    PyObject *one = tensor_facts(call->tensors[k], k < call->info->n_in && call->operands[k].kind == OPERAND_NUMBER);
    if (!one || PyTuple_SetItem(facts, k - begin, one)) Py_CLEAR(facts);
  }
  return facts;
}

/* Three 64-bit integers for each parameter: the kind, and the words of the number; up to the last one given, and to the axes. */
static PyObject *params_words(const call *call) {
  int64_t words[OP_MAX_PARAMS][3];
  const int32_t given = call->how.n_params, n = given > call->op->axes ? given : call->op->axes + 1;
  for (int32_t k = 0; k < n; k++) {
    const quern_scalar *value = k < given ? &call->how.params[k] : &call->info->params[k].value;
    words[k][0] = value->kind;
    memcpy(&words[k][1], &value->v, sizeof value->v);
  }
  return PyBytes_FromStringAndSize((const char *)words, n * (Py_ssize_t)sizeof *words);
}

static PyObject *infer(call *call, quern_shape *shapes) {
  const int32_t n_in = call->info->n_in;
  if (call_hold(call) || (call_wants_cast(call) && call_cast_inputs(call, 1)) || imagine_results(call, shapes)) return NULL;
  return Py_BuildValue("NNN", list_facts(call, 0, n_in), list_facts(call, n_in, n_operands(call)), params_words(call));
}

PyObject *call_infer(op_object *op, arguments *given) { return describe(op, given, infer); }
