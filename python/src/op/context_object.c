/* SPDX-License-Identifier: Apache-2.0
 *
 * context_object.c: the ops of a context; see context_object.h. The default context has the ops of the library's process-wide context,
 * with those that a host has registered there, and a context of its own for expressions and specs, which the process-wide one does not
 * accept. */
#include "op/context_object.h"

#include <string.h>

#include "base/errors.h"
#include "call/op_object.h"
#include "op/op.h"

/* ---- Finding ops ---- */

quern_ctx *context_own(context_object *self) {
  quern_status status = self->ctx ? QUERN_OK : quern_ctx_create(NULL, &self->ctx);
  if (status) raise_status(status);
  return self->ctx;
}

static quern_status find(const context_object *self, const char *name, quern_op **op) {
  PyThreadState *thread = PyEval_SaveThread(); /* a derivative of a spec's op may be made now */
  quern_status status = quern_op_find(self->is_default ? NULL : self->ctx, name, op);
  if (self->is_default && status == QUERN_E_NOTFOUND && self->ctx) status = quern_op_find(self->ctx, name, op);
  PyEval_RestoreThread(thread);
  return status;
}

/* Built-in ops have kernels; those of a spec's op may be compiled in any call. */
static int is_built_in(const char *name) {
  quern_op *op;
  if (quern_op_find(NULL, name, &op)) return 0;
  quern_op_release(op);
  return 1;
}

/* Whether the name is that of the derivative of an op that may keep its dimensions: its axes have the same default. */
static int is_of_reduced(const context_object *self, const char *name) {
  static const char end[] = "_backward";
  char of[256];
  const size_t n = strlen(name);
  quern_op *op;
  int is_reduced = 0;
  if (n < sizeof end || n >= sizeof of || strcmp(name + n - (sizeof end - 1), end) != 0) return 0;
  memcpy(of, name, n - (sizeof end - 1));
  of[n - (sizeof end - 1)] = 0;
  if (find(self, of, &op)) return 0;
  const quern_op_info *info = quern_op_describe(op);
  for (int32_t k = 0; info->backward && strcmp(info->backward, name) == 0 && k < info->n_params; k++)
    is_reduced |= quern_param_role(info, k) == QUERN_ROLE_KEEPDIMS;
  quern_op_release(op);
  return is_reduced;
}

/* What quern._pickles and quern._show know of an op: (its kind "op" or "expression", its name or text, the context's options, the
 * path of its spec or None, the paths of all specs of the context). */
static PyObject *origin_of(const context_object *self, const char *kind, PyObject *text) {
  PyObject *spec = PyDict_GetItemWithError(self->spec_of, text), *paths = PyDict_Values(self->spec_of);
  PyObject *set = paths ? PySet_New(paths) : NULL, *sorted = set ? context_sorted(set) : NULL;
  Py_XDECREF(paths);
  return sorted ? Py_BuildValue("sOOON", kind, text, self->options, spec ? spec : Py_None, sorted) : NULL;
}

/* The same object as long as the library finds the same op. */
PyObject *context_find(context_object *self, PyObject *name) {
  quern_op *op;
  if (!PyUnicode_Check(name)) return PyErr_Format(PyExc_TypeError, "the name of an op: %R, expected a str", name);
  PyObject *known = PyDict_GetItemWithError(self->ops, name), *text;
  if (!known && PyErr_Occurred()) return NULL;
  Py_XINCREF(known);
  if (!(text = PyUnicode_AsUTF8String(name))) {
    Py_XDECREF(known);
    return NULL;
  }
  if (strlen(PyBytes_AsString(text)) != (size_t)PyBytes_Size(text)) {
    Py_DECREF(text);
    Py_XDECREF(known);
    return PyErr_Format(PyExc_KeyError, "there is no op %.100R: its name has a character of value 0", name);
  }
  quern_status status = find(self, PyBytes_AsString(text), &op);
  if (status == QUERN_OK && known && ((op_object *)known)->op == op) {
    quern_op_release(op);
    Py_DECREF(text);
    return known;
  }
  Py_XDECREF(known);
  PyObject *found = status ? raise_status(status) : op_new(op, !is_built_in(PyBytes_AsString(text)), is_of_reduced(self, PyBytes_AsString(text)));
  Py_DECREF(text);
  if (found) found = op_with_origin(found, origin_of(self, "op", name));
  if (found && PyDict_SetItem(self->ops, name, found)) Py_CLEAR(found);
  return found;
}

/* Adds the names of a context's ops to a set. */
static int add_names(quern_ctx *ctx, PyObject *names) {
  quern_op *op;
  for (int32_t k = 0; quern_op_at(ctx, k, &op) == QUERN_OK; k++) {
    PyObject *name = PyUnicode_FromString(quern_op_describe(op)->name);
    quern_op_release(op);
    int failed = name ? PySet_Add(names, name) : -1;
    Py_XDECREF(name);
    if (failed) return -1;
  }
  return 0;
}

PyObject *context_names(const context_object *self) {
  PyObject *names = PySet_New(NULL);
  if (names && ((self->is_default && add_names(NULL, names)) || (self->ctx && add_names(self->ctx, names)))) Py_CLEAR(names);
  return names;
}

PyObject *context_sorted(PyObject *names) {
  PyObject *list = names ? PySequence_List(names) : NULL;
  PyObject *tuple = list && PyList_Sort(list) == 0 ? PyList_AsTuple(list) : NULL;
  Py_XDECREF(list);
  Py_XDECREF(names);
  return tuple;
}

/* ---- Making ops ---- */

PyObject *context_compile(PyObject *object, PyObject *expression) {
  context_object *self = (context_object *)object;
  quern_op *op;
  if (!PyUnicode_Check(expression)) return PyErr_Format(PyExc_TypeError, "compile: %R, expected a str", expression);
  PyObject *text = context_own(self) ? PyUnicode_AsUTF8String(expression) : NULL;
  if (!text) return NULL;
  quern_status status = QUERN_E_ARGUMENT;
  if (strlen(PyBytes_AsString(text)) == (size_t)PyBytes_Size(text)) {
    PyThreadState *thread = PyEval_SaveThread();
    status = quern_op_compile(self->ctx, PyBytes_AsString(text), &op);
    PyEval_RestoreThread(thread);
  } else {
    quern_set_last_error("compile: the expression has a character of value 0");
  }
  Py_DECREF(text);
  return status ? raise_compile(status) : op_with_origin(op_new(op, 1, 0), origin_of(self, "expression", expression));
}
