/* SPDX-License-Identifier: Apache-2.0
 *
 * specs.c: the ops of spec files in a context; see specs.h. A text that was loaded already gives the same ops again. */
#include "op/specs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/errors.h"
#include "call/op_object.h"
#include "op/context_object.h"

/* The library's limit. One byte more is read, so that it can refuse larger files. */
#define LARGEST_SPEC ((size_t)1 << 20)

/* ---- Files ---- */

enum { NOT_REGULAR = -1 };

/* The bytes of a regular file that is open. 0, or an errno. */
static int read_open(int file, char *text, size_t *size) {
  for (*size = 0; *size <= LARGEST_SPEC;) {
    const ssize_t n = read(file, text + *size, LARGEST_SPEC + 1 - *size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) break;
    *size += (size_t)n;
  }
  return 0;
}

/* *text: owned (free). 0, NOT_REGULAR, or an errno. */
static int read_text(const char *path, char **text, size_t *size) {
  struct stat about;
  const int file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC); /* a FIFO is not waited for */
  if (file < 0) return errno;
  int number = fstat(file, &about) ? errno : S_ISDIR(about.st_mode) ? EISDIR : S_ISREG(about.st_mode) ? 0 : NOT_REGULAR;
  *text = number ? NULL : malloc(LARGEST_SPEC + 1);
  if (!number) number = *text ? read_open(file, *text, size) : ENOMEM;
  if (number) free(*text);
  close(file);
  return number;
}

static PyObject *raise_not_regular(const char *path) {
  char sentence[1024];
  snprintf(sentence, sizeof sentence, "load_spec: %.900s: not a regular file", path);
  quern_set_last_error(sentence);
  return raise_spec(QUERN_E_IO, path);
}

/* The file's text as bytes: a new reference. */
static PyObject *text_of(const char *path) {
  char *text = NULL;
  size_t size = 0;
  PyThreadState *thread = PyEval_SaveThread(); /* reading a file may take long */
  const int number = read_text(path, &text, &size);
  PyEval_RestoreThread(thread);
  if (number == NOT_REGULAR) return raise_not_regular(path);
  if (number) return number == ENOMEM ? PyErr_NoMemory() : raise_file(number, path);
  PyObject *bytes = PyBytes_FromStringAndSize(text, (Py_ssize_t)size);
  free(text);
  return bytes;
}

/* ---- Ops ---- */

/* Adds the name of the op's derivative to a set, and notes it as the spec's: the library makes many derivatives when they are first found. */
static int add_derivative(context_object *self, PyObject *derivatives, PyObject *op, PyObject *path) {
  const char *backward = ((op_object *)op)->info->backward;
  PyObject *name = backward ? PyUnicode_FromString(backward) : NULL;
  const int failed = backward && (!name || PySet_Add(derivatives, name) || PyDict_SetItem(self->spec_of, name, path));
  Py_XDECREF(name);
  return failed ? -1 : 0;
}

/* The ops of these names, of a spec, without backward ops of others among them. */
static PyObject *ops_of(context_object *self, PyObject *names, PyObject *path) {
  PyObject *derivatives = PySet_New(NULL), *ops = derivatives ? PyList_New(0) : NULL, *list = ops ? PyList_New(0) : NULL;
  for (Py_ssize_t k = 0; list && k < PyTuple_Size(names); k++) {
    PyObject *op = context_find(self, PyTuple_GetItem(names, k));
    if (!op || PyList_Append(ops, op) || add_derivative(self, derivatives, op, path)) Py_CLEAR(list);
    Py_XDECREF(op);
  }
  for (Py_ssize_t k = 0; list && k < PyTuple_Size(names); k++) {
    const int came = PySet_Contains(derivatives, PyTuple_GetItem(names, k));
    if (came < 0 || (!came && PyList_Append(list, PyList_GetItem(ops, k)))) Py_CLEAR(list);
  }
  PyObject *result = list ? PyList_AsTuple(list) : NULL;
  Py_XDECREF(list);
  Py_XDECREF(ops);
  Py_XDECREF(derivatives);
  return result;
}

/* The ops of the names that the spec has added to `before`; they are noted as the spec's. Releases `before`. */
static PyObject *note_ops(context_object *self, PyObject *before, PyObject *path) {
  PyObject *names = context_names(self), *added = names ? PyNumber_Subtract(names, before) : NULL;
  PyObject *sorted = context_sorted(added);
  int failed = !sorted;
  for (Py_ssize_t k = 0; !failed && k < PyTuple_Size(sorted); k++)
    failed = PyDict_SetItem(self->spec_of, PyTuple_GetItem(sorted, k), path);
  PyObject *ops = failed ? NULL : ops_of(self, sorted, path);
  Py_XDECREF(sorted);
  Py_XDECREF(names);
  Py_DECREF(before);
  return ops;
}

/* ---- Loading ---- */

/* Adds to the library's sentence what to do about a file that was loaded with another text. */
static void name_change(context_object *self, PyObject *path) {
  PyObject *text, *known;
  Py_ssize_t place = 0;
  while (PyDict_Next(self->specs, &place, &text, &known)) {
    char sentence[1024];
    const char *said = quern_last_error();
    const int n = (int)strcspn(said, "\n"); /* behind it are the line and a caret */
    if (PyUnicode_Compare(PyTuple_GetItem(known, 0), path) != 0) continue;
    snprintf(sentence, sizeof sentence, "%.*s; the file has changed since it was loaded, and ops do not change: load it into a "
             "new quern.Context()%s", n, said, said + n);
    quern_set_last_error(sentence);
    return;
  }
}

/* path: as the library gets it, and as a str. */
static PyObject *load_new(context_object *self, const char *path, PyObject *name, PyObject *text) {
  PyObject *before = context_names(self);
  if (!before) return NULL;
  PyThreadState *thread = PyEval_SaveThread(); /* running a spec may take long */
  quern_status status = quern_spec_load_text(self->ctx, path, PyBytes_AsString(text), (size_t)PyBytes_Size(text));
  PyEval_RestoreThread(thread);
  if (status) {
    Py_DECREF(before);
    if (status == QUERN_E_EXISTS) name_change(self, name);
    return raise_spec(status, path);
  }
  PyObject *ops = note_ops(self, before, name), *entry = ops ? PyTuple_Pack(2, name, ops) : NULL;
  if (!entry || PyDict_SetItem(self->specs, text, entry)) Py_CLEAR(ops);
  Py_XDECREF(entry);
  return ops;
}

static void lock(context_object *self) {
  PyThreadState *thread = PyEval_SaveThread();
  PyThread_acquire_lock(self->loading, WAIT_LOCK);
  PyEval_RestoreThread(thread);
}

PyObject *context_load_spec(PyObject *object, PyObject *path) {
  context_object *self = (context_object *)object;
  PyObject *bytes, *ops = NULL;
  if (!context_own(self) || !PyUnicode_FSConverter(path, &bytes)) return NULL;
  PyObject *text = text_of(PyBytes_AsString(bytes)), *name = text ? PyUnicode_DecodeFSDefault(PyBytes_AsString(bytes)) : NULL;
  if (name) {
    lock(self);
    PyObject *known = PyDict_GetItemWithError(self->specs, text);
    if (known) ops = new_ref(PyTuple_GetItem(known, 1));
    else if (!PyErr_Occurred()) ops = load_new(self, PyBytes_AsString(bytes), name, text);
    PyThread_release_lock(self->loading);
  }
  Py_XDECREF(name);
  Py_XDECREF(text);
  Py_DECREF(bytes);
  return ops;
}
