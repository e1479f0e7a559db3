/* SPDX-License-Identifier: Apache-2.0
 *
 * evaluate.c: an expression over the caller's variables; see evaluate.h. The text is compiled once per context and kept; a repeated
 * call costs a look-up of the text and one of each name. */
#include "op/evaluate.h"

#include "call/op_object.h"
#include "op/context_object.h"

/* Texts that are kept; beyond that the oldest is forgotten. */
#define MOST_EXPRESSIONS 256

/* ORDER keywords */
enum { LOCALS, GLOBALS, OUT, DTYPE, STREAM, N_OPTIONS };
static const char *const keywords[N_OPTIONS] = {"local_dict", "global_dict", "out", "dtype", "stream"};
static PyObject *interned[N_OPTIONS]; /* for the life of the process */

/* ---- Arguments ---- */

static int make_names(void) {
  for (int k = 0; k < N_OPTIONS; k++)
    if (!interned[k] && !(interned[k] = PyUnicode_InternFromString(keywords[k]))) return -1;
  return 0;
}

/* NumExpr's arguments that have no counterpart; any other name is taken for a variable's. */
static int refuse_name(PyObject *name) {
  static const char *const others[][2] = {
      {"truediv", "/ of integers always gives a float"},
      {"optimization", "there are no levels"},
      {"order", "a result has the layout of the operands"},
      {"casting", "dtype= is the dtype of the result"},
      {"sanitize", "the text is never run as Python"},
      {"ex_uses_vml", "functions are Quern's own"},
  };
  const char *remedy = "variables are given as local_dict={...}";
  for (size_t k = 0; k < sizeof others / sizeof *others; k++)
    if (PyUnicode_CompareWithASCIIString(name, others[k][0]) == 0) remedy = others[k][1];
  PyErr_Format(PyExc_TypeError, "evaluate: it has no argument %U; %s", name, remedy);
  return -1;
}

static int find_option(PyObject *name) {
  for (int k = 0; k < N_OPTIONS; k++)
    if (name == interned[k]) return k;
  for (int k = 0; k < N_OPTIONS; k++)
    if (PyUnicode_Compare(name, interned[k]) == 0) return k;
  return refuse_name(name);
}

/* The expression by position; local_dict, global_dict and out by position or name, in NumExpr's order; dtype and stream by name.
 * What is missing or None is NULL. */
static int bind(PyObject *const *args, Py_ssize_t n, PyObject *names, PyObject **options) {
  const Py_ssize_t n_named = names ? PyTuple_Size(names) : 0;
  for (int k = 0; k < N_OPTIONS; k++) options[k] = NULL;
  if (n < 1 || n > 4) {
    PyErr_Format(PyExc_TypeError, "evaluate: %zd arguments by position, expected an expression, local_dict, global_dict, out", n);
    return -1;
  }
  for (Py_ssize_t k = 1; k < n; k++) options[k - 1] = args[k] == Py_None ? NULL : args[k];
  for (Py_ssize_t k = 0; k < n_named; k++) {
    const int option = find_option(PyTuple_GetItem(names, k));
    if (option < 0) return -1;
    if (option + 1 < n) {
      PyErr_Format(PyExc_TypeError, "evaluate: %s is given twice", keywords[option]);
      return -1;
    }
    options[option] = args[n + k] == Py_None ? NULL : args[n + k];
  }
  return 0;
}

/* ---- Expressions ---- */

static int forget_oldest(PyObject *expressions) {
  PyObject *text, *op;
  Py_ssize_t place = 0;
  if (PyDict_Size(expressions) < MOST_EXPRESSIONS || !PyDict_Next(expressions, &place, &text, &op)) return 0;
  Py_INCREF(text); /* its deletion may run foreign code */
  const int failed = PyDict_DelItem(expressions, text);
  Py_DECREF(text);
  return failed;
}

/* The op of the text: a new reference. */
static PyObject *op_of(context_object *self, PyObject *text) {
  if (!PyUnicode_Check(text)) return PyErr_Format(PyExc_TypeError, "evaluate: %.100R, expected a str", text);
  PyObject *known = PyDict_GetItemWithError(self->expressions, text);
  if (known) return new_ref(known);
  PyObject *op = PyErr_Occurred() ? NULL : context_compile((PyObject *)self, text);
  if (op && (forget_oldest(self->expressions) || PyDict_SetItem(self->expressions, text, op))) Py_CLEAR(op);
  return op;
}

/* ---- Variables ---- */

/* 1: *value is a new reference; 0: there is none; -1: an exception. */
static int look_up(PyObject *space, PyObject *name, PyObject **value) {
  if (PyDict_CheckExact(space)) {
    *value = PyDict_GetItemWithError(space, name);
    Py_XINCREF(*value);
  } else {
    *value = PyObject_GetItem(space, name);
    if (!*value && PyErr_ExceptionMatches(PyExc_KeyError)) PyErr_Clear();
  }
  return *value ? 1 : PyErr_Occurred() ? -1 : 0;
}

/* The values of the op's inputs and parameters. Returns their number; -1: an exception, and none are held. */
static Py_ssize_t take_values(const op_object *op, PyObject *locals, PyObject *globals, int is_given, PyObject **values) {
  const Py_ssize_t n = op->info->n_in + op->info->n_params;
  for (Py_ssize_t k = 0; k < n; k++) {
    PyObject *name = PyTuple_GetItem(op->names, k);
    int found = look_up(locals, name, &values[k]);
    if (!found && globals != locals) found = look_up(globals, name, &values[k]);
    if (found > 0) continue;
    if (!found)
      PyErr_Format(PyExc_NameError, "evaluate: there is no variable %U in %s", name,
                   is_given ? "local_dict or global_dict"
                            : "the caller's locals or globals (an enclosing function's are not seen); give local_dict={...}");
    while (k > 0) Py_DECREF(values[--k]);
    return -1;
  }
  return n;
}

/* Up to Python 3.12 a function's frame keeps the dict of its locals, and with it all values, until it ends. It is emptied if
 * it has no other owner: namespaces of modules and classes, and what locals() has given, have other owners. Releases the reference. */
static void end_locals(PyObject *locals, PyObject *globals) {
  if (locals != globals && PyDict_CheckExact(locals) && Py_REFCNT(locals) == 2) PyDict_Clear(locals);
  Py_DECREF(locals);
}

/* ---- The call ---- */

static PyObject *names_of(PyObject *const *options) {
  PyObject *list[N_OPTIONS], *tuple;
  int32_t n = 0;
  for (int k = OUT; k < N_OPTIONS; k++)
    if (options[k]) list[n++] = interned[k];
  tuple = PyTuple_New(n);
  for (int32_t k = 0; tuple && k < n; k++)
    if (PyTuple_SetItem(tuple, k, new_ref(list[k]))) Py_CLEAR(tuple);
  return tuple;
}

static PyObject *call(op_object *op, PyObject **values, Py_ssize_t n, PyObject *const *options) {
  PyObject *names = NULL;
  Py_ssize_t end = n;
  if (options[OUT] || options[DTYPE] || options[STREAM]) {
    if (!(names = names_of(options))) return NULL;
    for (int k = OUT; k < N_OPTIONS; k++)
      if (options[k]) values[end++] = options[k];
  }
  PyObject *result = op->vectorcall((PyObject *)op, values, (size_t)n, names);
  Py_XDECREF(names);
  return result;
}

static PyObject *evaluate_op(op_object *op, PyObject *const *options) {
  PyObject *values[OP_MAX_OPERANDS + OP_MAX_PARAMS + N_OPTIONS], *result = NULL;
  PyObject *locals = options[LOCALS] ? options[LOCALS] : PyEval_GetLocals();
  PyObject *globals = options[GLOBALS] ? options[GLOBALS] : PyEval_GetGlobals();
  if (!locals || !globals) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "evaluate: called from no Python code; give local_dict={...}");
    return NULL;
  }
  Py_INCREF(locals);
  Py_INCREF(globals);
  const Py_ssize_t n = take_values(op, locals, globals, options[LOCALS] != NULL, values);
  if (n >= 0) result = call(op, values, n, options);
  for (Py_ssize_t k = 0; k < n; k++) Py_DECREF(values[k]);
  if (options[LOCALS])
    Py_DECREF(locals);
  else
    end_locals(locals, globals);
  Py_DECREF(globals);
  return result;
}

PyObject *context_evaluate(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) {
  PyObject *options[N_OPTIONS];
  if (make_names() || bind(args, n, names, options)) return NULL;
  PyObject *op = op_of((context_object *)self, args[0]);
  PyObject *result = op ? evaluate_op((op_object *)op, options) : NULL;
  Py_XDECREF(op);
  return result;
}
