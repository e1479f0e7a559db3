/* SPDX-License-Identifier: Apache-2.0
 *
 * arguments.c: see arguments.h. */
#include "call/arguments.h"

#include "types/scalar.h"

/* The keywords that every op has, interned. */
static PyObject *out_name, *dtype_name, *stream_name;

int arguments_start(void) {
  if (!out_name) out_name = PyUnicode_InternFromString("out");
  if (!dtype_name) dtype_name = PyUnicode_InternFromString("dtype");
  if (!stream_name) stream_name = PyUnicode_InternFromString("stream");
  return out_name && dtype_name && stream_name ? 0 : -1;
}

/* ---- Values ---- */

/* None means the default. */
static int take_param(PyObject *value, const quern_param_info *param, quern_scalar *scalar) {
  if (value != Py_None) return scalar_from_object(value, scalar);
  *scalar = param->value;
  return 0;
}

/* Replaces Python's error by one that names the parameter. */
static int refuse_param(const op_object *op, int32_t k, PyObject *value) {
  PyObject *error = PyErr_ExceptionMatches(PyExc_OverflowError) ? PyExc_OverflowError : PyExc_TypeError;
  if (!PyErr_ExceptionMatches(error)) return -1; /* raised by foreign code */
  PyErr_Clear();
  PyErr_Format(error, "%s: parameter %d (%s): %.100R, expected a number%s", op->info->name, (int)k + 1,
               op->info->params[k].name, value, error == PyExc_TypeError ? "" : " of the range of f64");
  return -1;
}

/* A bool, as 0 or 1: Python's or a library's, or an int. */
static int take_flag(const op_object *op, int32_t k, PyObject *value, quern_scalar *scalar) {
  if (!PyFloat_Check(value) && !PyComplex_Check(value) && scalar_from_object(value, scalar) == 0) {
    *scalar = (quern_scalar){.kind = QUERN_I64, .v.i = scalar->kind == QUERN_F64 ? scalar->v.f[0] != 0 : scalar->v.i != 0};
    return 0;
  }
  if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
  PyErr_Clear();
  PyErr_Format(PyExc_TypeError, "%s: %s: %.100R, expected a bool", op->info->name, op->info->params[k].name, value);
  return -1;
}

/* Sets parameter k; parameters between the last one given and k keep their defaults until they are set. */
static int bind_param(const op_object *op, int32_t k, PyObject *value, uint32_t *given, arguments *bound) {
  const quern_op_info *info = op->info;
  if (*given >> k & 1) {
    PyErr_Format(PyExc_TypeError, "%s: %U is given twice", info->name, PyTuple_GetItem(op->names, info->n_in + k));
    return -1;
  }
  *given |= 1u << k;
  if (k == op->axes) return axes_take(value, info->name, &bound->axis);
  for (; bound->n_params <= k; bound->n_params++) bound->params[bound->n_params] = info->params[bound->n_params].value;
  if (k == op->keepdims && value != Py_None) return take_flag(op, k, value, &bound->params[k]);
  return take_param(value, &info->params[k], &bound->params[k]) ? refuse_param(op, k, value) : 0;
}

/* None: the legacy default stream, or the producers' stream. A bool is refused, as a mistake. */
static int bind_stream(const char *op, PyObject *value, arguments *bound) {
  int overflow;
  if (value == Py_None) return 0;
  if (PyBool_Check(value) || !PyIndex_Check(value)) {
    PyErr_Format(PyExc_TypeError, "%s: stream: %.100R, expected an int or None", op, value);
    return -1;
  }
  PyObject *integer = PyNumber_Index(value);
  if (!integer) return -1;
  int64_t number = PyLong_AsLongLongAndOverflow(integer, &overflow);
  Py_DECREF(integer);
  if (!overflow && number == -1 && PyErr_Occurred()) return -1;
  bound->stream = (void *)(intptr_t)number;
  bound->has_stream = 1;
  if (!overflow && number > 0) return 0;
  PyErr_Format(PyExc_ValueError, "%s: stream: %.100R, expected None, 1 (the legacy default stream), 2 (the thread's) or a "
               "pointer", op, value);
  return -1;
}

static int bind_dtype(PyObject *value, arguments *bound) {
  return value == Py_None || (bound->dtype = dtype_from_object(value)) ? 0 : -1;
}

/* out: with one output the object or a tuple of it; with several a tuple, in which None means a new object. */
static int bind_out(const op_object *op, PyObject *value, arguments *bound) {
  int32_t n_out = op->info->n_out;
  if (value == Py_None) return 0;
  bound->out_given = value;
  if (!PyTuple_Check(value)) {
    bound->out[0] = value;
    if (n_out == 1) return 0;
  } else if (PyTuple_Size(value) == n_out) {
    for (int32_t k = 0; k < n_out; k++) {
      PyObject *item = PyTuple_GetItem(value, k);
      bound->out[k] = item == Py_None ? NULL : item;
    }
    return 0;
  }
  PyErr_Format(PyExc_TypeError, "%s: out: expected %s%d", op->info->name,
               n_out == 1 ? "a tensor, or a tuple of " : "a tuple of ", (int)n_out);
  return -1;
}

/* ---- Names ---- */

static int is_name(PyObject *name, PyObject *known) { return name == known || PyUnicode_Compare(name, known) == 0; }

/* The index of a name among inputs and parameters; -1: unknown. Names in Python code are interned, as ours are. */
static int32_t find_name(const op_object *op, PyObject *name) {
  int32_t n = op->info->n_in + op->info->n_params;
  for (int32_t k = 0; k < n; k++)
    if (PyTuple_GetItem(op->names, k) == name) return k;
  for (int32_t k = 0; k < n; k++)
    if (PyUnicode_Compare(PyTuple_GetItem(op->names, k), name) == 0) return k;
  return -1;
}

/* Names of arguments in other libraries. ours: the parameter that it is here, which the op has; or of: the op that it is said of */
static const struct {
  const char *name, *ours, *of, *remedy;
} foreign_names[] = {
    {"dim", "axis", NULL, "; dim is axis here, a number"},
    {"keepdim", "keepdims", NULL, "; keepdim is keepdims here"},
    {"negative_slope", "slope", NULL, "; negative_slope is slope here"},
    {"ddof", "correction", NULL, "; NumPy's ddof is correction here"},
    {"unbiased", "correction", NULL, "; write correction=1 or correction=0"},
    {"p", "ord", NULL, "; p is ord here"},
    {"approximate", NULL, "gelu", "; the approximation is gelu_tanh(x)"},
    {"a", "x", NULL, "; a is x here, the first by position"},
    {"input", "x", NULL, "; input is x here, the first by position"},
    {"other", "y", NULL, "; other is y here, the second by position"},
    {"a_min", "min", NULL, "; a_min is min here"},
    {"a_max", "max", NULL, "; a_max is max here"},
    {"where", NULL, NULL, "; there are no masks: write where(mask, x, 0) for an operand"},
    {"inplace", NULL, NULL, "; write out=x"},
    {"casting", NULL, NULL, "; dtype= is the dtype of results, astype(x, dtype) casts an input"},
    {"order", NULL, NULL, "; a result has the layout of the inputs, or is out=x"},
    {"decimals", NULL, "round", "; write round(x * 100) / 100"},
};

static int has_argument(const op_object *op, const char *name) {
  for (int32_t k = 0; k < op->info->n_in + op->info->n_params; k++)
    if (PyUnicode_CompareWithASCIIString(PyTuple_GetItem(op->names, k), name) == 0) return 1;
  return 0;
}

static int refuse_name(const op_object *op, PyObject *name) {
  for (size_t k = 0; k < sizeof foreign_names / sizeof *foreign_names; k++) {
    const char *ours = foreign_names[k].ours, *of = foreign_names[k].of;
    if (PyUnicode_CompareWithASCIIString(name, foreign_names[k].name) != 0) continue;
    if ((ours && !has_argument(op, ours)) || (of && strcmp(of, op->info->name) != 0)) continue;
    PyErr_Format(PyExc_TypeError, "%s: it has no argument %U%s", op->info->name, name, foreign_names[k].remedy);
    return -1;
  }
  PyErr_Format(PyExc_TypeError, "%s: it has no argument %U; it has %R", op->info->name, name, op->names);
  return -1;
}

static int bind_named(const op_object *op, PyObject *name, PyObject *value, uint32_t *given, arguments *bound) {
  const quern_op_info *info = op->info;
  if (name == out_name) return bind_out(op, value, bound);
  int32_t k = find_name(op, name);
  if (k >= info->n_in) return bind_param(op, k - info->n_in, value, given, bound);
  if (k >= 0 && bound->in[k]) {
    PyErr_Format(PyExc_TypeError, "%s: %U is given twice", info->name, name);
    return -1;
  }
  if (k >= 0) {
    bound->in[k] = value;
    return 0;
  }
  if (is_name(name, out_name)) return bind_out(op, value, bound);
  if (is_name(name, dtype_name)) return bind_dtype(value, bound);
  if (is_name(name, stream_name)) return bind_stream(info->name, value, bound);
  return refuse_name(op, name);
}

static int refuse_missing(const op_object *op, int32_t k) {
  PyErr_Format(PyExc_TypeError, "%s: input %d (%s) is missing", op->info->name, (int)k + 1, op->info->args[k].name);
  return -1;
}

/* Refuses missing values, None included, of parameters without a default, but for the optional one. */
static int check_params(const op_object *op, const arguments *bound) {
  const quern_op_info *info = op->info;
  for (int32_t k = 0; k < info->n_params; k++) {
    const quern_scalar *value = k < bound->n_params ? &bound->params[k] : &info->params[k].value;
    if (value->kind != QUERN_NONE || k == op->initial) continue;
    PyErr_Format(PyExc_TypeError, "%s: parameter %d (%s) is missing", info->name, (int)k + 1, info->params[k].name);
    return -1;
  }
  return 0;
}

int arguments_bind(const op_object *op, PyObject *const *args, Py_ssize_t n, PyObject *keywords, arguments *bound) {
  const quern_op_info *info = op->info;
  uint32_t given = 0;
  if (n > info->n_in + info->n_params) {
    PyErr_Format(PyExc_TypeError, "%s: %zd arguments by position; it has %d input%s and %d parameter%s", info->name, n,
                 (int)info->n_in, info->n_in == 1 ? "" : "s", (int)info->n_params, info->n_params == 1 ? "" : "s");
    return -1;
  }
  for (int32_t k = 0; k < info->n_in; k++) bound->in[k] = k < n ? args[k] : NULL;
  for (int32_t k = 0; k < info->n_out; k++) bound->out[k] = NULL;
  bound->out_given = NULL;
  bound->dtype = NULL;
  bound->stream = NULL;
  bound->has_stream = 0;
  bound->is_foreign = 0;
  bound->axis.kind = AXIS_DEFAULT;
  bound->n_params = 0;
  for (Py_ssize_t k = info->n_in; k < n; k++)
    if (bind_param(op, (int32_t)k - info->n_in, args[k], &given, bound)) return -1;
  Py_ssize_t n_named = keywords ? PyTuple_Size(keywords) : 0;
  for (Py_ssize_t k = 0; k < n_named; k++)
    if (bind_named(op, PyTuple_GetItem(keywords, k), args[n + k], &given, bound)) return -1;
  for (int32_t k = 0; k < info->n_in; k++)
    if (!bound->in[k]) return refuse_missing(op, k);
  if (check_params(op, bound)) return -1;
  bound->n_made = 0;
  for (int32_t k = 0; k < info->n_out; k++) bound->n_made += !bound->out[k];
  return 0;
}
