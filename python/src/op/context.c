/* SPDX-License-Identifier: Apache-2.0
 *
 * context.c: see context.h. The default context has the ops of the library's process-wide context, with those that a host has
 * registered there, and a context of its own for expressions and specs, which the process-wide one does not accept. */
#include "op/context.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/errors.h"
#include "base/lines.h"
#include "call/op_object.h"
#include "op/op.h"

typedef struct context_object {
  PyObject_HEAD
  PyObject *weak_references;
  quern_ctx *ctx;     /* owned; NULL: default context, not needed yet */
  int32_t is_default;
  PyObject *ops;      /* dict: name -> the quern.Op last found under it */
} context_object;

static PyTypeObject *context_type; /* for the life of the process */

static context_object *make_context(quern_ctx *ctx, int is_default) {
  context_object *self = PyObject_New(context_object, context_type);
  PyObject *ops = self ? PyDict_New() : NULL;
  if (!self) {
    quern_ctx_release(ctx);
    return NULL;
  }
  self->weak_references = NULL;
  self->ctx = ctx;
  self->is_default = is_default;
  self->ops = ops;
  if (!ops) Py_CLEAR(self);
  return self;
}

static void context_delete(PyObject *object) {
  context_object *self = (context_object *)object;
  PyTypeObject *type = Py_TYPE(object);
  if (self->weak_references) PyObject_ClearWeakRefs(object);
  quern_ctx_release(self->ctx);
  Py_XDECREF(self->ops);
  PyObject_Free(self);
  Py_DECREF(type);
}

/* ---- Options ---- */

static int take_jit(PyObject *value, int32_t *jit) {
  static const char *const names[] = {"off", "sync", "async"};
  if (value == Py_None) return 0;
  for (int32_t k = 0; PyUnicode_Check(value) && k < 3; k++)
    if (PyUnicode_CompareWithASCIIString(value, names[k]) == 0) {
      *jit = QUERN_JIT_OFF + k;
      return 0;
    }
  PyErr_Format(PyExc_ValueError, "Context: jit: %R, expected 'off', 'sync', 'async' or None", value);
  return -1;
}

static int take_threads(PyObject *value, int32_t *threads) {
  if (value == Py_None) return 0;
  long n = PyLong_AsLong(value);
  if (n == -1 && PyErr_Occurred()) return -1;
  if (n >= 1 && n <= INT32_MAX) {
    *threads = (int32_t)n;
    return 0;
  }
  PyErr_Format(PyExc_ValueError, "Context: threads: %R, expected 1 or more", value);
  return -1;
}

/* *bytes: owned, NULL for None. */
static int take_path(PyObject *value, PyObject **bytes) {
  *bytes = NULL;
  return value == Py_None || PyUnicode_FSConverter(value, bytes) ? 0 : -1;
}

static const char *text_of(PyObject *bytes) { return bytes ? PyBytes_AsString(bytes) : NULL; }

static PyObject *context_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
  static char *names[] = {"jit", "threads", "cache_dir", "cc", NULL};
  PyObject *jit = Py_None, *threads = Py_None, *cache_dir = Py_None, *cc = Py_None;
  PyObject *cache_dir_bytes = NULL, *cc_bytes = NULL, *self = NULL;
  quern_options options = {.size = sizeof options};
  (void)type;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|OOOO:Context", names, &jit, &threads, &cache_dir, &cc)) return NULL;
  if (take_jit(jit, &options.jit) == 0 && take_threads(threads, &options.threads) == 0 &&
      take_path(cache_dir, &cache_dir_bytes) == 0 && take_path(cc, &cc_bytes) == 0) {
    quern_ctx *ctx;
    options.cache_dir = text_of(cache_dir_bytes);
    options.cc = text_of(cc_bytes);
    quern_status status = quern_ctx_create(&options, &ctx);
    self = status ? raise_status(status) : (PyObject *)make_context(ctx, 0);
  }
  Py_XDECREF(cache_dir_bytes);
  Py_XDECREF(cc_bytes);
  return self;
}

/* ---- Finding ops ---- */

static quern_ctx *own_ctx(context_object *self) {
  quern_status status = self->ctx ? QUERN_OK : quern_ctx_create(NULL, &self->ctx);
  if (status) raise_status(status);
  return self->ctx;
}

static quern_status find(const context_object *self, const char *name, quern_op **op) {
  if (!self->is_default) return quern_op_find(self->ctx, name, op);
  quern_status status = quern_op_find(NULL, name, op);
  return status == QUERN_E_NOTFOUND && self->ctx ? quern_op_find(self->ctx, name, op) : status;
}

/* Built-in ops have kernels; those of a spec's op may be compiled in any call. */
static int is_built_in(const char *name) {
  quern_op *op;
  if (quern_op_find(NULL, name, &op)) return 0;
  quern_op_release(op);
  return 1;
}

/* Whether the name is that of the derivative of an op with the parameter keepdims: its axes have the same default. */
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
    is_reduced |= strcmp(info->params[k].name, "keepdims") == 0;
  quern_op_release(op);
  return is_reduced;
}

/* The quern.Op of that name, the same object as long as the library finds the same op: a new reference. */
static PyObject *op_of(context_object *self, PyObject *name) {
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
  if (found && PyDict_SetItem(self->ops, name, found)) Py_CLEAR(found);
  return found;
}

static PyObject *context_op(PyObject *self, PyObject *name) { return op_of((context_object *)self, name); }

static PyObject *context_call(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords) {
  if (n < 1) {
    PyErr_SetString(PyExc_TypeError, "call: the name of an op is wanted");
    return NULL;
  }
  op_object *op = (op_object *)op_of((context_object *)self, args[0]);
  PyObject *result = op ? op->vectorcall((PyObject *)op, args + 1, (size_t)(n - 1), keywords) : NULL;
  Py_XDECREF(op);
  return result;
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

static PyObject *set_of_names(const context_object *self) {
  PyObject *names = PySet_New(NULL);
  if (names && ((self->is_default && add_names(NULL, names)) || (self->ctx && add_names(self->ctx, names)))) Py_CLEAR(names);
  return names;
}

/* A sorted tuple. Releases the set, which may be NULL. */
static PyObject *sorted(PyObject *names) {
  PyObject *list = names ? PySequence_List(names) : NULL;
  PyObject *tuple = list && PyList_Sort(list) == 0 ? PyList_AsTuple(list) : NULL;
  Py_XDECREF(list);
  Py_XDECREF(names);
  return tuple;
}

static PyObject *context_ops(PyObject *self, PyObject *unused) {
  (void)unused;
  return sorted(set_of_names((context_object *)self));
}

/* ---- Making ops ---- */

static PyObject *context_compile(PyObject *object, PyObject *expression) {
  context_object *self = (context_object *)object;
  quern_op *op;
  if (!PyUnicode_Check(expression)) return PyErr_Format(PyExc_TypeError, "compile: %R, expected a str", expression);
  PyObject *text = own_ctx(self) ? PyUnicode_AsUTF8String(expression) : NULL;
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
  return status ? raise_compile(status) : op_new(op, 1, 0);
}

/* The ops of these names, without backward ops of others among them. Releases `added`. */
static PyObject *ops_of(context_object *self, PyObject *added) {
  PyObject *names = sorted(added), *derivatives = names ? PySet_New(NULL) : NULL, *ops = names ? PyList_New(0) : NULL;
  PyObject *list = derivatives && ops ? PyList_New(0) : NULL;
  for (Py_ssize_t k = 0; list && k < PyTuple_Size(names); k++) {
    PyObject *op = op_of(self, PyTuple_GetItem(names, k));
    const char *backward = op ? ((op_object *)op)->info->backward : NULL;
    PyObject *derivative = backward ? PyUnicode_FromString(backward) : NULL;
    if (!op || PyList_Append(ops, op)) Py_CLEAR(list);
    if (backward && (!derivative || PySet_Add(derivatives, derivative))) Py_CLEAR(list);
    Py_XDECREF(derivative);
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
  Py_XDECREF(names);
  return result;
}

/* The ops of the names that are in `names` and not in `before`. Releases both. */
static PyObject *new_ops(context_object *self, PyObject *before, PyObject *names) {
  PyObject *added = before && names ? PyNumber_Subtract(names, before) : NULL;
  Py_XDECREF(names);
  Py_XDECREF(before);
  return ops_of(self, added);
}

/* 0: the file can be read; else an errno. It is not opened: that could block on a FIFO. */
static int check_file(const char *path) {
  struct stat about;
  if (stat(path, &about) || access(path, R_OK)) return errno;
  return S_ISDIR(about.st_mode) ? EISDIR : 0;
}

static quern_status load(quern_ctx *ctx, const char *path, int *number) {
  PyThreadState *thread = PyEval_SaveThread(); /* reading a file, or running a spec, may take long */
  quern_status status = QUERN_E_IO;
  *number = check_file(path);
  if (!*number) status = quern_spec_load(ctx, path);
  PyEval_RestoreThread(thread);
  return status;
}

/* The new ops include those that other threads load into the context meanwhile. */
static PyObject *context_load_spec(PyObject *object, PyObject *path) {
  context_object *self = (context_object *)object;
  PyObject *bytes, *before, *result = NULL;
  int number;
  if (!own_ctx(self) || !PyUnicode_FSConverter(path, &bytes)) return NULL;
  if ((before = set_of_names(self))) {
    quern_status status = load(self->ctx, PyBytes_AsString(bytes), &number);
    if (status == QUERN_OK) {
      result = new_ops(self, before, set_of_names(self));
    } else {
      Py_DECREF(before);
      result = number ? raise_file(number, PyBytes_AsString(bytes)) : raise_spec(status, PyBytes_AsString(bytes));
    }
  }
  Py_DECREF(bytes);
  return result;
}

static PyObject *context_describe(PyObject *self, PyObject *unused) {
  char text[8192];
  (void)unused;
  quern_status status = quern_ctx_describe(((context_object *)self)->ctx, text, sizeof text);
  return status && status != QUERN_E_LIMIT ? raise_status(status) : lines_dict(text);
}

static PyMethodDef context_methods[] = {
    {"call", (PyCFunction)(void (*)(void))context_call, METH_FASTCALL | METH_KEYWORDS,
     "call($self, name, /, *operands, out=None, dtype=None, stream=None, **params)\n--\n\nCalls the op of that name."},
    {"compile", context_compile, METH_O,
     "compile($self, expression, /)\n--\n\n"
     "An Op for an expression such as \"y = gelu(x*w + b); z = y > 0\". Its inputs are the names without an assignment, in\n"
     "order of appearance; its outputs are the assigned names. `param a;` declares a number as an argument of each call."},
    {"describe", context_describe, METH_NOARGS,
     "describe($self, /)\n--\n\nThe context's resources: a dict of str, among them isa, threads, jit, cuda, cache."},
    {"load_spec", context_load_spec, METH_O,
     "load_spec($self, path, /)\n--\n\nAdds the ops of a spec file, all or none, and returns them as a tuple, sorted by\n"
     "name, with those that other threads have added meanwhile; their derivatives, NAME_backward, by op()."},
    {"op", context_op, METH_O, "op($self, name, /)\n--\n\nThe Op of that name. KeyError: there is none."},
    {"ops", context_ops, METH_NOARGS, "ops($self, /)\n--\n\nThe names of all ops, sorted."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef context_members[] = {
    {"__weaklistoffset__", Py_T_PYSSIZET, offsetof(context_object, weak_references), Py_READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot context_slots[] = {
    {Py_tp_doc,
     "Context(jit=None, threads=None, cache_dir=None, cc=None)\n--\n\n"
     "A set of ops, with threads and a cache of compiled kernels of its own. jit: when expressions are compiled, 'off', 'sync'\n"
     "(before the first run) or 'async' (meanwhile; the default). threads: the most that one call uses. cache_dir: the folder\n"
     "of the disk cache, '' for none. cc: a C compiler to be used instead of Clang in process.\n\n"
     "quern.compile, quern.load_spec, quern.call, quern.op, quern.ops and quern.describe are those of the default context."},
    {Py_tp_new, (void *)context_new},
    {Py_tp_dealloc, (void *)context_delete},
    {Py_tp_methods, context_methods},
    {Py_tp_members, context_members},
    {0, NULL},
};

static PyType_Spec context_spec = {"quern.Context", sizeof(context_object), 0, Py_TPFLAGS_DEFAULT, context_slots};

/* ---- The default context ---- */

static int add_functions(PyObject *module, PyObject *context) {
  for (const PyMethodDef *method = context_methods; method->ml_name; method++)
    if (module_add(module, method->ml_name, PyObject_GetAttrString(context, method->ml_name))) return -1;
  return 0;
}

/* Adds all ops without a dot in their names, unless the module has such an attribute. */
static int add_ops(PyObject *module, PyObject *context) {
  PyObject *names = context_ops(context, NULL);
  Py_ssize_t n = names ? PyTuple_Size(names) : -1;
  int failed = !names;
  for (Py_ssize_t k = 0; k < n && !failed; k++) {
    PyObject *name = PyTuple_GetItem(names, k);
    if (!PyUnicode_IsIdentifier(name) || PyObject_HasAttr(module, name)) continue; /* an attribute of the module */
    PyObject *op = context_op(context, name);
    failed = !op || PyObject_SetAttr(module, name, op);
    Py_XDECREF(op);
  }
  Py_XDECREF(names);
  return failed ? -1 : 0;
}

int context_add(PyObject *module) {
  if (!context_type && !(context_type = (PyTypeObject *)PyType_FromSpec(&context_spec))) return -1;
  if (module_add(module, "Context", new_ref((PyObject *)context_type))) return -1;
  PyObject *context = (PyObject *)make_context(NULL, 1);
  int failed = !context || add_functions(module, context) || add_ops(module, context);
  Py_XDECREF(context);
  return failed ? -1 : 0;
}
