/* SPDX-License-Identifier: Apache-2.0
 *
 * context.c: see context.h. The default context has the ops of the library's process-wide context, with those that a host has
 * registered there, and a context of its own for expressions and specs, which the process-wide one does not accept. */
#include "op/context.h"

#include <string.h>

#include "base/errors.h"
#include "base/lines.h"
#include "call/op_object.h"
#include "op/context_object.h"
#include "op/op.h"

static PyTypeObject *context_type; /* for the life of the process */

/* Takes over the context and the reference to the options, which may be NULL after an exception. */
static context_object *make_context(quern_ctx *ctx, int is_default, PyObject *options) {
  context_object *self = options ? PyObject_New(context_object, context_type) : NULL;
  if (!self) {
    Py_XDECREF(options);
    quern_ctx_release(ctx);
    return NULL;
  }
  self->weak_references = NULL;
  self->ctx = ctx;
  self->is_default = is_default;
  self->options = options;
  self->ops = PyDict_New();
  self->expressions = PyDict_New();
  self->specs = PyDict_New();
  self->spec_of = PyDict_New();
  self->loading = PyThread_allocate_lock();
  if (!self->loading && !PyErr_Occurred()) PyErr_NoMemory();
  if (!self->ops || !self->expressions || !self->specs || !self->spec_of || !self->loading) Py_CLEAR(self);
  return self;
}

static void context_delete(PyObject *object) {
  context_object *self = (context_object *)object;
  PyTypeObject *type = Py_TYPE(object);
  if (self->weak_references) PyObject_ClearWeakRefs(object);
  quern_ctx_release(self->ctx);
  Py_XDECREF(self->options);
  Py_XDECREF(self->ops);
  Py_XDECREF(self->expressions);
  Py_XDECREF(self->specs);
  Py_XDECREF(self->spec_of);
  if (self->loading) PyThread_free_lock(self->loading);
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

/* A path as a str: a new reference. */
static PyObject *path_object(PyObject *bytes) {
  return bytes ? PyUnicode_DecodeFSDefault(PyBytes_AsString(bytes)) : new_ref(Py_None);
}

/* One of quern_options' limits by its name without "_limit". Returns 0, or -1 with an error set. */
static int take_limit(PyObject *name, PyObject *value, quern_options *options) {
  static const char *const names[] = {"text", "node", "compile_ms", "compile_cost", "spec_step", "kernel", "cache_bytes"};
  const long long n = PyLong_AsLongLong(value);
  int k = 0;
  if (n == -1 && PyErr_Occurred()) return -1;
  while (k < 7 && !(PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, names[k]) == 0)) k++;
  if (k == 7) {
    PyErr_Format(PyExc_ValueError, "Context: limits: %R, expected text, node, compile_ms, compile_cost, spec_step, kernel or cache_bytes", name);
    return -1;
  }
  if (n < 1 || (k < 3 && n > INT32_MAX)) {
    PyErr_Format(PyExc_ValueError, "Context: limits: %U: %R, expected 1 or more", name, value);
    return -1;
  }
  if (k == 0) options->text_limit = (size_t)n;
  else if (k < 3) *(k == 1 ? &options->node_limit : &options->compile_ms_limit) = (int32_t)n;
  else if (k < 5) *(k == 3 ? &options->compile_cost_limit : &options->spec_step_limit) = n;
  else *(k == 5 ? &options->kernel_limit : &options->cache_bytes_limit) = n;
  return 0;
}

/* limits: None, a dict or pairs. *kept: a new reference to sorted pairs, or to None; NULL with an error set. */
static int take_limits(PyObject *limits, quern_options *options, PyObject **kept) {
  PyObject *dict = PyDict_New(), *name, *value, *pairs = NULL;
  Py_ssize_t at = 0;
  *kept = NULL;
  if (limits == Py_None) *kept = new_ref(Py_None);
  int failed = !dict;
  if (!failed && !*kept) failed = (PyDict_Check(limits) ? PyDict_Update(dict, limits) : PyDict_MergeFromSeq2(dict, limits, 1)) != 0;
  while (!failed && PyDict_Next(dict, &at, &name, &value)) failed = take_limit(name, value, options);
  if (!failed && !*kept) {
    pairs = PyDict_Items(dict);
    if (pairs && PyList_Sort(pairs) == 0) *kept = PyList_AsTuple(pairs);
    Py_XDECREF(pairs);
  }
  Py_XDECREF(dict);
  if (!failed && *kept) return 0;
  Py_XDECREF(*kept);
  *kept = NULL;
  return -1;
}

static PyObject *context_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
  static char *names[] = {"jit", "threads", "cache_dir", "cc", "limits", NULL};
  PyObject *jit = Py_None, *threads = Py_None, *cache_dir = Py_None, *cc = Py_None, *limits = Py_None;
  PyObject *kept = NULL, *cache_dir_bytes = NULL, *cc_bytes = NULL, *self = NULL;
  quern_options options = {.size = sizeof options};
  (void)type;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|OOOOO:Context", names, &jit, &threads, &cache_dir, &cc, &limits)) return NULL;
  if (take_jit(jit, &options.jit) == 0 && take_threads(threads, &options.threads) == 0 &&
      take_path(cache_dir, &cache_dir_bytes) == 0 && take_path(cc, &cc_bytes) == 0 && take_limits(limits, &options, &kept) == 0) {
    quern_ctx *ctx;
    options.cache_dir = text_of(cache_dir_bytes);
    options.cc = text_of(cc_bytes);
    quern_status status = quern_ctx_create(&options, &ctx);
    PyObject *given = Py_BuildValue("OONNO", jit, threads, path_object(cache_dir_bytes), path_object(cc_bytes), kept);
    if (status) Py_XDECREF(given);
    self = status ? raise_status(status) : (PyObject *)make_context(ctx, 0, given);
  }
  Py_XDECREF(cache_dir_bytes);
  Py_XDECREF(cc_bytes);
  Py_XDECREF(kept);
  return self;
}

static PyObject *context_cancel(PyObject *self, PyObject *unused) {
  (void)unused;
  quern_ctx_cancel(((context_object *)self)->ctx);
  return new_ref(Py_None);
}

/* ---- Finding ops ---- */

quern_ctx *context_own(context_object *self) {
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

static PyObject *context_op(PyObject *self, PyObject *name) { return context_find((context_object *)self, name); }

static PyObject *context_call(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords) {
  if (n < 1) {
    PyErr_SetString(PyExc_TypeError, "call: the name of an op is wanted");
    return NULL;
  }
  op_object *op = (op_object *)context_find((context_object *)self, args[0]);
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

static PyObject *context_ops(PyObject *self, PyObject *unused) {
  (void)unused;
  return context_sorted(context_names((context_object *)self));
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

static PyObject *context_describe(PyObject *self, PyObject *unused) {
  char text[8192];
  (void)unused;
  quern_status status = quern_ctx_describe(((context_object *)self)->ctx, text, sizeof text);
  return status && status != QUERN_E_LIMIT ? raise_status(status) : lines_dict(text);
}

static PyMethodDef context_methods[] = {
    {"call", (PyCFunction)(void (*)(void))context_call, METH_FASTCALL | METH_KEYWORDS,
     "call($self, name, /, *operands, out=None, dtype=None, stream=None, **params)\n--\n\nCalls the op of that name."},
    {"cancel", context_cancel, METH_NOARGS,
     "cancel($self, /)\n--\n\nDrops the compiles that have not begun: these ops are interpreted until their next call asks anew."},
    {"compile", context_compile, METH_O,
     "compile($self, expression, /)\n--\n\n"
     "An Op for an expression such as \"y = gelu(x*w + b); z = y > 0\". Its inputs are the names without an assignment, in\n"
     "order of appearance; its outputs are the assigned names. `param a;` declares a number as an argument of each call."},
    {"describe", context_describe, METH_NOARGS,
     "describe($self, /)\n--\n\nThe context's resources: a dict of str, among them isa, threads, jit, cuda, cache."},
    {"evaluate", (PyCFunction)(void (*)(void))context_evaluate, METH_FASTCALL | METH_KEYWORDS,
     "evaluate($self, expression, /, local_dict=None, global_dict=None, out=None, *, dtype=None, stream=None)\n--\n\n"
     "The result of an expression such as \"a*b + c\" over the caller's variables of these names: locals, then globals, or the\n"
     "dicts (any mappings) given instead; local_dict={...}, global_dict={} is all that the text can see. `param` names are\n"
     "looked up, too. The text is compiled once, as by compile, and kept. It is of Quern's expression language, which has\n"
     "no attributes, indices, strings or calls of Python: whatever it says, it computes with tensors and does nothing else.\n"
     "(NumExpr runs its text by Python's eval.)"},
    {"load_spec", context_load_spec, METH_O,
     "load_spec($self, path, /)\n--\n\nAdds the ops of a spec file, all or none, and returns them as a tuple, sorted by\n"
     "name; their derivatives, NAME_backward, by op(). A text that was loaded before gives the same ops again."},
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
     "Context(jit=None, threads=None, cache_dir=None, cc=None, limits=None)\n--\n\n"
     "A set of ops, with threads and a cache of compiled kernels of its own. jit: when expressions are compiled, 'off', 'sync'\n"
     "(before the first run) or 'async' (meanwhile; the default). threads: the most that one call uses. cache_dir: the folder\n"
     "of the disk cache, '' for none. cc: a C compiler to be used instead of Clang in process. limits: of what\n"
     "texts of others may cost, a dict: text, node, compile_ms, compile_cost, spec_step, kernel, cache_bytes (docs/howto/limits.md).\n\n"
     "quern.compile, quern.evaluate, quern.load_spec, quern.call, quern.op, quern.ops and quern.describe are those of the default\n"
     "context."},
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
  PyObject *context = (PyObject *)make_context(NULL, 1, new_ref(Py_None));
  int failed = !context || add_functions(module, context) || add_ops(module, context);
  Py_XDECREF(context);
  return failed ? -1 : 0;
}
