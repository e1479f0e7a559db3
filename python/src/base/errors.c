/* SPDX-License-Identifier: Apache-2.0
 *
 * errors.c: see errors.h. */
#include "base/errors.h"

#include <stdlib.h>
#include <string.h>

static PyObject *class_of(quern_status status) {
  switch (status) {
    case QUERN_E_DTYPE: return PyExc_TypeError;
    case QUERN_E_VERSION: return PyExc_BufferError;
    case QUERN_E_MEMORY: return PyExc_MemoryError;
    case QUERN_E_UNSUPPORTED: return PyExc_NotImplementedError;
    case QUERN_E_NOTFOUND: return PyExc_KeyError;
    case QUERN_E_IO: return PyExc_OSError;
    case QUERN_E_COMPILER:
    case QUERN_E_DRIVER:
    case QUERN_E_CAPTURING: return PyExc_RuntimeError;
    default: return PyExc_ValueError;
  }
}

/* Raises `exception` with the status. Takes over the reference, which may be NULL after an error. */
static PyObject *set_exception(PyObject *exception, quern_status status) {
  PyObject *number = exception ? PyLong_FromLong(status) : NULL;
  if (number && PyObject_SetAttrString(exception, "status", number) == 0)
    PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
  Py_XDECREF(number);
  Py_XDECREF(exception);
  return NULL;
}

static PyObject *decode(const char *text, size_t n) { return PyUnicode_DecodeUTF8(text, (Py_ssize_t)n, "replace"); }

static PyObject *raise_as(PyObject *class, quern_status status) {
  const char *text = quern_last_error();
  PyObject *sentence = decode(text, strlen(text));
  PyObject *exception = sentence ? PyObject_CallFunctionObjArgs(class, sentence, NULL) : NULL;
  Py_XDECREF(sentence);
  return set_exception(exception, status);
}

/* ---- Syntax ---- */

/* The parts of a sentence `name:line:column: message`, which is followed by the line and a caret. */
typedef struct place {
  const char *name, *message, *line;
  size_t name_length, message_length, line_length;
  int number, column;
} place;

/* Reads digits and a colon; returns the place behind them, or NULL. */
static const char *take_number(const char *text, int *number) {
  char *end;
  long value = strtol(text, &end, 10);
  *number = (int)value;
  return end > text && *end == ':' && value >= 0 && value < 1 << 30 ? end + 1 : NULL;
}

#define INDENTATION 2 /* of the line in the sentence */

/* The end of the name at the beginning of `text`, where unprintable characters are '?'; NULL: it is another name. */
static const char *end_of_name(const char *text, const char *name) {
  for (; *name; name++, text++)
    if (*text != *name && *text != '?') return NULL;
  return *text == ':' ? text : NULL;
}

/* Parses the sentence. name: of the file; NULL: any name without such numbers. */
static int find_place(const char *text, const char *name, place *place) {
  const char *end = name ? end_of_name(text, name) : NULL;
  for (const char *colon = end ? end : strchr(text, ':'); colon; colon = strchr(colon + 1, ':')) {
    const char *rest = take_number(colon + 1, &place->number);
    rest = rest ? take_number(rest, &place->column) : NULL;
    if (!rest) continue;
    rest += *rest == ' ';
    place->name = text;
    place->name_length = (size_t)(colon - text);
    place->message = rest;
    place->message_length = strcspn(rest, "\n");
    place->line = rest + place->message_length;
    for (int i = 0; i <= INDENTATION && *place->line && (i == 0 || *place->line == ' '); i++) place->line++;
    place->line_length = strcspn(place->line, "\n");
    return 1;
  }
  return 0;
}

/* SyntaxError(message, (filename, line, column, text)): Python shows the line with a caret itself. path: of the file; NULL. */
static PyObject *raise_syntax(quern_status status, const char *path) {
  place at;
  const char *sentence = quern_last_error();
  if (!find_place(sentence, path, &at)) return raise_as(PyExc_SyntaxError, status);
  PyObject *message = decode(at.message, at.message_length), *name = NULL;
  PyObject *line = decode(at.line, at.line_length), *exception = NULL;
  if (message && line) name = path ? PyUnicode_DecodeFSDefault(path) : decode(at.name, at.name_length);
  if (name)
    exception = PyObject_CallFunction(PyExc_SyntaxError, "O(OiiO)", message, name, at.number, at.column, line);
  Py_XDECREF(message);
  Py_XDECREF(name);
  Py_XDECREF(line);
  return set_exception(exception, status);
}

/* ---- Files ---- */

PyObject *raise_file(int number, const char *path) {
  PyObject *name = PyUnicode_DecodeFSDefault(path), *exception = NULL;
  if (name) exception = PyObject_CallFunction(PyExc_OSError, "isO", number, strerror(number), name);
  Py_XDECREF(name);
  return set_exception(exception, QUERN_E_IO);
}

/* ---- Entry points ---- */

PyObject *raise_status(quern_status status) {
  if (PyErr_Occurred()) return NULL;
  if (status == QUERN_E_SYNTAX) return raise_syntax(status, NULL);
  return raise_as(class_of(status), status);
}

PyObject *raise_exchange(quern_status status) {
  switch (status) {
    case QUERN_E_DTYPE:
    case QUERN_E_LAYOUT:
    case QUERN_E_DEVICE:
    case QUERN_E_ALIGNMENT:
    case QUERN_E_READONLY:
    case QUERN_E_VERSION:
    case QUERN_E_UNSUPPORTED: return PyErr_Occurred() ? NULL : raise_as(PyExc_BufferError, status);
    default: return raise_status(status);
  }
}

PyObject *raise_spec(quern_status status, const char *path) {
  return status == QUERN_E_SYNTAX && !PyErr_Occurred() ? raise_syntax(status, path) : raise_status(status);
}

PyObject *raise_compile(quern_status status) {
  if (status != QUERN_E_NOTFOUND) return raise_status(status);
  return PyErr_Occurred() ? NULL : raise_as(PyExc_NameError, status);
}

void raise_kind(void *unused, const char *kind, const char *message) {
  PyObject *builtins = PyImport_ImportModule("builtins"), *type = builtins ? PyObject_GetAttrString(builtins, kind) : NULL;
  (void)unused;
  PyErr_Clear();
  PyErr_SetString(type && PyExceptionClass_Check(type) ? type : PyExc_RuntimeError, message);
  Py_XDECREF(type);
  Py_XDECREF(builtins);
}
